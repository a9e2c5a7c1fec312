"""What a look at a pair shows, as Prometheus metrics: for people without a screen before them."""
