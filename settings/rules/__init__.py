"""Rules that check several settings together. Each returns the problems it finds; none raises."""
