"""`ops status`: the snapshot of a mirror as a document and as one screen."""
