"""What rules use: reading of resources, the builder of policies, and the configuration. It has no rule of its own."""
