"""Text columns with values that are not text."""

import pyarrow as pa


def broken(*values: bytes | None) -> pa.Array:
    """A text column of any bytes, as Spark's cast of binary makes it without validating UTF-8."""
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
