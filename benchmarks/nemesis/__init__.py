"""Faults at random moments from a seed, under traffic whose truth is known: `python -m benchmarks.nemesis --seed 1`."""
