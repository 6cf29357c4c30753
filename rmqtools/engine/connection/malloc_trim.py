"""Makes malloc keep memory that answers have used, for later answers.

glibc returns the free end of a heap to the system when it exceeds a threshold, and the next answers take it
again page by page: up to a tenth of a read's time. By default the threshold adapts to twice the largest piece
that was mapped and freed. A read frees a similar amount, some megabytes, so the effect varies by chance. Each
thread has a heap. ``MALLOC_TRIM_THRESHOLD_`` in the environment fixes the threshold.
Source of the rule: mallopt(3), M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, "dynamic".
"""

from functools import cache

_LARGEST_BYTES = 16 * 1024 * 1024  # twice that is kept: more than a read of bodies of 4 MB frees at once


@cache
def keep_freed_memory() -> None:
    """Keep up to 32 MiB free at the end of each heap. With a C library other than glibc, do nothing."""
    bytes(_LARGEST_BYTES)  # mapped and unmapped without touching a page
