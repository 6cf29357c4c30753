"""Spark's Python processes: cached clients, garbage collection, interpreters, error reports."""
