"""`ops render`: a mirror and its monitoring as files for places without an operator."""
