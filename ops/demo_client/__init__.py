"""Demo clients: `ops produce` sends random records, `ops consume` reads them as a consumer group."""
