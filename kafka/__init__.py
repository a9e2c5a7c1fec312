"""Clients of Kafka clusters and of Connect: metadata, offsets, groups, ACLs, MirrorMaker's own topics, and waits."""
