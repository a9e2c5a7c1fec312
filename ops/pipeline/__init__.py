"""The commands behind the make targets of the pipelines: comment, summary, drift, verification, identity, state."""

DRIFT_WITHIN_S = 600.0
"""How long a refresh may take, unless the command says otherwise: here, because both it and the check need it."""
