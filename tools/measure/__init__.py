"""Programs that measure: speed, and clients in trouble. See README.md."""
