"""Lag and rates of a streaming query, from its progress reports."""
