"""What packages promise each other: the verification request, stack outputs, names of checks, and topic patterns."""
