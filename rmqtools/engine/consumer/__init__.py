"""Push and pull consumers: fetching, listeners, acknowledging, sending back."""
