"""A local stand-in for the clusters, made of real parts: one machine runs the whole product without Kubernetes.

Imports nothing, because `sandbox.toolchain` runs before any package is installed.
"""
