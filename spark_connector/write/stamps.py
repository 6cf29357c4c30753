"""Stamps: properties that distinguish a message written twice from a message with equal content.

    SPARK_STAMP   the row's place, [stampId/][query/]batch/partition/row; with idColumn too, the stampId
    SPARK_HASH    128 bits in hex over the row, or over the column named by idColumn where it is not null

A failed task runs again and sends its rows again, with equal stamps. A whole job that runs again also has
equal stamps if they contain the option ``stampId``, or the query and micro-batch of a ``foreachBatch``.

With ``stampId`` and ``idColumn``, two messages are the same row if both are equal, in any task. Otherwise the
row's place counts: if the input is not deterministic, a row may be in another place in a second attempt, or
another row in its place. Such rows differ in one of the two properties, so both stay: there may be
duplicates, never a loss.
"""

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow import row_bytes
from rmqtools.model.message import SPARK_HASH, SPARK_STAMP

STAMP: Final = SPARK_STAMP
HASH: Final = SPARK_HASH
_HASH_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Stamper:
    """Makes the stamps of one task's rows.

    Attributes:
        query: unique id of the write, equal in all attempts of a task and all restarts of a query.
        batch: number of a stream's micro-batch; 0 for a batch write.
        partition: the task's partition.
        id_column: column to hash; None: all columns, as for rows with a null id.
        stamp_id: the user's id of the write; None: none.
    """

    query: str | None
    batch: int
    partition: int
    id_column: str | None = None
    stamp_id: str | None = None

    def __call__(self, rows: pa.RecordBatch, first_row: int) -> dict[str, pa.Array]:
        """Stamp properties for every row; the first row has number ``first_row`` in the task."""
        return {STAMP: self._stamps(rows, first_row), HASH: self._hashes(rows)}

    def _stamps(self, rows: pa.RecordBatch, first_row: int) -> pa.Array:
        names = [name for name in (self.stamp_id, self.query) if name is not None]
        prefix = "/".join([*names, str(self.batch), str(self.partition), ""])
        places = pa.array([f"{prefix}{row}" for row in range(first_row, first_row + rows.num_rows)])
        if self.stamp_id is None or self.id_column is None:
            return places
        return pc.if_else(rows.column(self.id_column).is_null(), places, self.stamp_id)

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
        """Return the bytes to hash: the id, or the whole row if the id is null."""
        whole = sorted(rows.schema.names)
        if self.id_column is None:
            return row_bytes(rows, whole)
        ids = rows.column(self.id_column)
        of_ids = row_bytes(rows, [self.id_column])
        return pc.if_else(ids.is_null(), row_bytes(rows, whole), of_ids) if ids.null_count else of_ids
