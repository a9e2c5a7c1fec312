"""What a run is asked: the typed request, and the reader of its JSON document."""
