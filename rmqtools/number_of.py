"""Counts in texts: ``1 queue``, ``2 queues``."""


def number_of(count: int, noun: str) -> str:
    """Return a count and its noun, in the plural unless the count is 1."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
