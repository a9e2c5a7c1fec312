"""Measurements: throughput of a mirror, preview of a large stack, verification, failovers, many groups, and a soak."""
