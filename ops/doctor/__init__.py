"""Doctor: looks once at a mirror and everything around it, recognises known troubles and says the remedy."""
