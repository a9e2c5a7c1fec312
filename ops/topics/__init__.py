"""`ops topics`: lists, describes and deletes topics of a stack's cluster."""
