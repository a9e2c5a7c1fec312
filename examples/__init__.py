"""Topologies and platforms as stack files, one folder each, with the manifests that they must render to."""
