"""Every metric by where it comes from: workers, brokers, the operator and the project's own programs."""
