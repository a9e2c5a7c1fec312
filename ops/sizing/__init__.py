"""`ops size`: tasks, workers, CPU and memory that a mirror needs for a rate of records."""
