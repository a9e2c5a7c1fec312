"""Measurements of what the project promises: how fast a mirror copies, how long a preview of a large stack takes."""
