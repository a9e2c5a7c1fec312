"""`ops doctor`: observes a mirror and everything around it once, and reports known issues with their remedies."""
