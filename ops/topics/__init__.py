"""`ops topics`: lists, describes and deletes topics of a site's cluster."""
