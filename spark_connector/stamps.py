"""Stamps: properties that tell a message written twice from one that is only alike.

    SPARK_STAMP   query/batch/partition/row: where the row was when it was written
    SPARK_HASH    128 bits in hex over the row, or over the column named by idColumn where it is not null

A task that fails is run again and sends its rows again, with equal stamps. Where the input is not
deterministic, a row may be in another place then, or another row in its place: such rows differ in one of
the two, so they stay; there may be duplicates, never a loss.
"""

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow import row_bytes

STAMP: Final = "SPARK_STAMP"
HASH: Final = "SPARK_HASH"
_HASH_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Stamper:
    """Makes the stamps of one task's rows.

    Attributes:
        query: what no other write has; the same for all attempts of a task, and for a query's restarts.
        batch: the number of a stream's micro-batch; 0 for a batch.
        partition: the task's partition.
        id_column: what to hash; None: all columns, as for rows whose id is null.
    """

    query: str
    batch: int
    partition: int
    id_column: str | None = None

    def __call__(self, rows: pa.RecordBatch, first_row: int) -> dict[str, pa.Array]:
        """Properties of every row, the first of which is number ``first_row`` of the task."""
        prefix = f"{self.query}/{self.batch}/{self.partition}/"
        places = pa.array([f"{prefix}{row}" for row in range(first_row, first_row + rows.num_rows)])
        return {STAMP: places, HASH: self._hashes(rows)}

    def _hashes(self, rows: pa.RecordBatch) -> pa.Array:
        encoded = self._hashed(rows)
        _, offsets, data = encoded.buffers()
        ends = np.frombuffer(offsets, np.int32)[: len(encoded) + 1].tolist()
        view = memoryview(data)
        digests = [
            blake2b(view[begin:end], digest_size=_HASH_BYTES).hexdigest() for begin, end in pairwise(ends)
        ]
        return pa.array(digests, pa.string())

    def _hashed(self, rows: pa.RecordBatch) -> pa.Array:
        """The bytes to hash. An id that is null tells no row from another, so there it is the whole row."""
        whole = sorted(rows.schema.names)
        if self.id_column is None:
            return row_bytes(rows, whole)
        ids = rows.column(self.id_column)
        of_ids = row_bytes(rows, [self.id_column])
        return pc.if_else(ids.is_null(), row_bytes(rows, whole), of_ids) if ids.null_count else of_ids
