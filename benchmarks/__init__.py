"""Measurements: throughput of a mirror, preview of a large stack, speed of a verification, and a soak."""
