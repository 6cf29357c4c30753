"""Batch and stream writes: sending rows, stamping them, dropping duplicates.

``writer`` and ``stream_writer`` send and count (``write_task``). ``stamps`` marks rows; ``duplicates``
removes rows that were stored twice; ``exactly_once`` commits staged rows.
"""
