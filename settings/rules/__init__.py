"""Rules that look at several settings together. Each returns the problems it finds; none raises."""
