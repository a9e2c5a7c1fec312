"""Drives the Pulumi engine: one stack of one project folder, its commands, their events and their errors."""
