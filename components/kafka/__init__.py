"""The components of a Kafka cluster: its brokers, users, topics and mirrors, and what serves their clients."""
