"""Limits on the size of a micro-batch; pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a micro-batch; None: no limit. ``max_delay`` is in seconds."""

    max_offsets: int | None = None
    max_bytes: int | None = None
    min_offsets: int | None = None
    max_delay: float = 15 * 60.0

    @property
    def any_given(self) -> bool:
        """Whether any limit is set."""
        return (self.max_offsets, self.max_bytes, self.min_offsets) != (None, None, None)
