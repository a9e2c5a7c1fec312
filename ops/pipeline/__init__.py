"""The commands behind the make targets of the pipelines: comment, summary, drift, verification, identity, state."""
