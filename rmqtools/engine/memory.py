"""Memory that answers have used is kept for the answers after them.

glibc gives the free end of a heap back to the system when it is longer than a threshold, so that the next
answers take it again page by page: up to a tenth of a read. The threshold is twice the largest piece that was
mapped on its own and freed, which a read of some megabytes at a time just reaches, or just not.
Source of the rule: mallopt(3), M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, "dynamic".
"""

from functools import cache

_LARGEST_BYTES = 8 * 1024 * 1024  # twice that is kept: more than a read has freed at once


@cache
def keep_freed_memory() -> None:
    """Let this process keep 16 MiB of what it has freed. With another C library than glibc: nothing."""
    bytes(_LARGEST_BYTES)  # mapped, and unmapped without a page of it being touched
