"""Batch and stream reads: planning on the driver, reading in tasks."""
