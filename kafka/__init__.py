"""Everything that asks a Kafka cluster or Connect: metadata, offsets, groups, MirrorMaker's own topics, waiting."""
