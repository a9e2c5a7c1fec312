"""Cost and size: what a stack may cost."""
