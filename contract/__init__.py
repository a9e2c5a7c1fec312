"""What packages promise each other: a verification's documents and metrics, stack outputs, and Java's patterns."""
