"""Members of groups while a broker stands still, beside the official Java client."""
