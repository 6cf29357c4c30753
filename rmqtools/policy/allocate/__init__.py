"""Allocation strategies, pure: one file each. Callers use ``share``, which checks and sorts the lists."""
