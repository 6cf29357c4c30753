"""Exact reads of queue ranges."""
