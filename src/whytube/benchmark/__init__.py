"""Programs that measure: each prints a table and writes JSON with its provenance."""
