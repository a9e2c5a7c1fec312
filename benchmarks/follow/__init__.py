"""What followed groups read again when the source is killed, by seeds, and what following many groups costs."""
