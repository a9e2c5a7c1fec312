"""Naming: names by which people, alerts and other stacks find resources."""
