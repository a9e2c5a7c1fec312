"""Verification job: proves that what a mirror should have copied lies on the target, record by record."""
