"""The two clusters and the mirror between them, without the records: metadata, positions, waiting."""
