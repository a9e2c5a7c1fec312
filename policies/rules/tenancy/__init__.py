"""Tenancy: what belongs to one line of business only."""
