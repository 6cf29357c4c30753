"""Batch and stream writes: sending rows, stamping them, dropping duplicates."""
