"""A new pair of stacks: its answers, what is written for them, and the command that asks."""
