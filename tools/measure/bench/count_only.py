"""A reader of almost no cost: it shows what the broker can give.

One connection, several pulls of each queue on the wire at predicted offsets; of an answer only the header is
looked at. An answer that comes back to another offset than was predicted ends the run with an error.
"""

import re
import socket
import struct
from collections.abc import Sequence

from rmqtools import QueueRange
from rmqtools.config.text import parse_address
from rmqtools.engine.reading.pull_command import pull_request
from rmqtools.engine.reading.range_read import MAX_MSG_NUMS
from rmqtools.model.names import TOOLS_CONSUMER_GROUP
from rmqtools.protocol.wire.command import encode_command

_IN_FLIGHT = 4  # of each queue
_RECEIVE_BYTES = 4 * 1024 * 1024
_PREFIX = struct.Struct(">II")
_FIELDS = re.compile(rb'"nextBeginOffset":"(\d+)".*"opaque":(\d+)|"opaque":(\d+).*"nextBeginOffset":"(\d+)"')


def count_messages(addr: str, ranges: Sequence[QueueRange]) -> int:
    """Read ranges of one broker; return how many messages they hold."""
    with socket.create_connection(parse_address(addr)) as connection:
        return _Counter(connection, ranges).run()


class _Counter:
    def __init__(self, connection: socket.socket, ranges: Sequence[QueueRange]) -> None:
        self._connection = connection
        self._ranges = ranges
        self._planned = [range_.begin for range_ in ranges]
        self._expected: dict[int, int] = {}  # by opaque: the offset that must come next
        self._opaque = 0
        self._buffer = bytearray(_RECEIVE_BYTES)

    def run(self) -> int:
        for number in range(len(self._ranges)):
            for _ in range(_IN_FLIGHT):
                self._ask(number)
        size = 0
        while self._expected:
            with memoryview(self._buffer) as view:
                size += self._connection.recv_into(view[size:])
            start = self._take(size)
            self._buffer[: size - start] = self._buffer[start:size]
            size -= start
        return sum(map(len, self._ranges))

    def _take(self, size: int) -> int:
        """Answer every whole frame with a new pull; where the rest begins."""
        start = 0
        while size - start >= _PREFIX.size:
            total, mark = _PREFIX.unpack_from(self._buffer, start)
            if start + 4 + total > size:
                break
            header = self._buffer[start + 8 : start + 8 + (mark & 0xFF_FFFF)]
            found = _FIELDS.search(header)
            if found is None:
                raise RuntimeError(f"unexpected answer: {header[:300]!r}")
            offset, opaque = int(found[1] or found[4]), int(found[2] or found[3])
            if self._expected.pop(opaque) != offset:
                raise RuntimeError(
                    f"the broker went on at {offset}: its pulls are not of {MAX_MSG_NUMS} messages"
                )
            self._ask(opaque % len(self._ranges))
            start += 4 + total
        return start

    def _ask(self, number: int) -> None:
        """Pull of a range; opaques are counted so that they say which."""
        range_, offset = self._ranges[number], self._planned[number]
        count = min(MAX_MSG_NUMS, range_.end - offset)
        if count <= 0:
            return
        command = pull_request(
            range_.queue.topic,
            range_.queue.queue_id,
            offset,
            broker_name=range_.queue.broker_name,
            max_msg_nums=count,
            group=TOOLS_CONSUMER_GROUP,
        )
        self._opaque += len(self._ranges)
        command.opaque = self._opaque + number
        self._expected[command.opaque] = self._planned[number] = offset + count
        self._connection.sendall(encode_command(command))
