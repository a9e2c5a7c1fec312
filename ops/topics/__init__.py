"""Topics of one cluster of a stack: which there are, what they are, and how one is deleted safely."""
