"""What a snapshot of a pair holds, as Prometheus metrics: for people without a screen before them."""
