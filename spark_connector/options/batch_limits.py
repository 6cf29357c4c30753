"""Limits on the size of a micro-batch; pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a micro-batch; None: no limit. ``max_delay`` is in seconds."""

    max_offsets: int | None = None
    max_bytes: int | None = None
    min_offsets: int | None = None
    max_delay: float = 15 * 60.0
