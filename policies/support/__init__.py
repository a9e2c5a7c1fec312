"""What rules use: traversal of resources, the builder of policies, and the configuration. It has no rule of its own."""
