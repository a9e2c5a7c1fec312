"""Offsets of consumer groups and of applications that keep their own: shown, translated, kept in files, set."""
