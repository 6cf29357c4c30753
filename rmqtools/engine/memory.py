"""Memory that answers have used is kept for the answers after them.

glibc gives the free end of a heap back to the system when it is longer than a threshold, so that the next
answers take it again page by page: up to a tenth of a read. The threshold is twice the largest piece that was
mapped on its own and freed. A read frees some megabytes at a time, which is about that: more or less by luck.
Each thread has a heap. ``MALLOC_TRIM_THRESHOLD_`` in the environment fixes the threshold.
Source of the rule: mallopt(3), M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, "dynamic".
"""

from functools import cache

_LARGEST_BYTES = 8 * 1024 * 1024  # twice that is kept: more than a read has freed at once


@cache
def keep_freed_memory() -> None:
    """Let 16 MiB stay free at the end of each heap. With another C library than glibc: nothing."""
    bytes(_LARGEST_BYTES)  # mapped, and unmapped without a page of it being touched
