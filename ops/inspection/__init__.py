"""Read-only observation of a mirror: probes with deadlines, and the snapshot that commands render."""
