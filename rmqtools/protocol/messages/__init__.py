"""Messages as brokers store and send them: bytes in, values out."""
