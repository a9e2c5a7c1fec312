"""Durability: what keeps records when a broker, a disk or an operator's mistake takes some away."""
