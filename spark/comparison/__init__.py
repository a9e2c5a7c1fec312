"""The records of both sides: reading them with Spark, comparing them, placing group positions in them."""
