"""Promotion: what was proven in one stage becomes what the next one runs, and a record is kept."""
