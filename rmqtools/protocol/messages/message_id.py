"""Message ids: the broker's names a position in a commit log, the client's names a message.

    offset id: address (4 or 16 bytes) | port:u32 | commit log offset:i64
    unique id: address (4 or 16 bytes) | pid:u16 | loader hash:u32 | ms since month start:u32 | counter:u16

Both are written as upper-case hex; the month starts in local time.
Source of the rule: MessageDecoder.createMessageId and decodeMessageId, MessageClientIDSetter (Java client).
"""

import ipaddress
import itertools
import struct
from collections import deque
from datetime import datetime

from rmqtools.errors import ProtocolError
from rmqtools.model.encoded_batch import MsgIds
from rmqtools.protocol.messages.hosts import decode_host, encode_host

_OFFSET = struct.Struct(">q")
_UNIQUE_FIXED = struct.Struct(">HI")
_AFTER_ADDRESS = _UNIQUE_FIXED.size + 6  # bytes of a unique id behind the address
_MASK_16, _MASK_32 = 0xFFFF, 0xFFFF_FFFF


def format_offset_msg_id(host: str, commit_log_offset: int) -> str:
    """Make the id of a position in the commit log of the broker at ``host`` (``address:port``)."""
    return (encode_host(host) + _OFFSET.pack(commit_log_offset)).hex().upper()


def parse_offset_msg_id(text: str) -> tuple[str, int]:
    """Read host and commit log offset.

    Raises:
        ProtocolError: not 32 or 56 hex digits.
    """
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(data) not in (16, 28) or len(text) != 2 * len(data):
        raise ProtocolError(f"offset message id {text[:100]!r}: want 32 or 56 hex digits")
    return decode_host(data[: -_OFFSET.size]), _OFFSET.unpack_from(data, len(data) - _OFFSET.size)[0]


def parse_id_process(text: str) -> tuple[str, int] | None:
    """Read the address and the lower 16 bits of the process id of the client that made an id.

    None: the text is no unique id, or it has another form.
    """
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    length = len(data) - _AFTER_ADDRESS
    if length not in (4, 16) or len(text) != 2 * len(data):
        return None
    return str(ipaddress.ip_address(data[:length])), int.from_bytes(data[length : length + 2])


class UniqueIdGenerator:
    """Makes client message ids; one per process. Safe to share between threads, without a lock.

    Args:
        ip: this client's address.
        pid: this process.
        loader_hash: any 32 bits that differ between the clients of one process.
    """

    def __init__(self, ip: str, pid: int, loader_hash: int) -> None:
        fixed = _UNIQUE_FIXED.pack(pid & _MASK_16, loader_hash & _MASK_32)
        self._fixed = (ipaddress.ip_address(ip).packed + fixed).hex().upper()
        self._counter = itertools.count()
        self._month = (0, 0)
        self._prefix = (-1, "")  # the time it is for, and the prefix

    def next(self, now_ms: int) -> str:
        """Return the next id. ``now_ms``: milliseconds since 1970; the time may step back a little."""
        return f"{self._prefix_at(now_ms)}{next(self._counter) & _MASK_16:04X}"

    def reserve(self, count: int, now_ms: int) -> MsgIds:
        """Return the next ``count`` ids, at most 65536, for messages encoded outside the producer."""
        taken = deque(itertools.islice(self._counter, count), maxlen=1)  # one call, which no thread divides
        first = taken[0] - count + 1 if taken else 0
        return MsgIds(self._prefix_at(now_ms), first & _MASK_16, count)

    def _prefix_at(self, now_ms: int) -> str:
        """Return an id without its counter; cached, because many ids are made in one millisecond."""
        known_ms, prefix = self._prefix
        if now_ms != known_ms:
            prefix = f"{self._fixed}{self._millis(now_ms):08X}"
            self._prefix = (now_ms, prefix)
        return prefix

    def _millis(self, now_ms: int) -> int:
        start_ms, end_ms = self._month
        if not start_ms <= now_ms < end_ms:
            start_ms, _ = self._month = month_bounds_ms(now_ms)
        return now_ms - start_ms & _MASK_32


def month_bounds_ms(now_ms: int) -> tuple[int, int]:
    """Return the start of the month of ``now_ms`` and of the next month, in local time."""
    start = datetime.fromtimestamp(now_ms / 1000).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    return int(start.timestamp() * 1000), int(following.timestamp() * 1000)
