"""The checks: pure functions from what a run has learned to a Check. They ask no cluster and need no Spark."""
