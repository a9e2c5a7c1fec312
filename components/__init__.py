"""Pulumi components: each brings one part of a stack up and waits until it is ready.

Nothing is imported here: a provider's process that needs one module must not load them all.
"""
