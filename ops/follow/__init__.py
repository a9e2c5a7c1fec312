"""`ops follow`: keeps groups of a mirror at their exact positions on the target, twice a second."""
