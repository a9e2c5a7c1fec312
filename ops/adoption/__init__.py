"""Takes clusters, users, topics and mirrors that exist already into a stack, without changing them."""
