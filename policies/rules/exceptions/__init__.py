"""Exceptions: the annotations that lift a rule are judged themselves."""
