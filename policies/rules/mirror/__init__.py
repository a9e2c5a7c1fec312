"""Mirror correctness: what makes a mirror complete and keeps it from copying what it must not."""
