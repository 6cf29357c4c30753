"""The body of a message of the load: whose it is, which number it has, and a checksum over all of it."""

import zlib

from tools.measure.faults.history import MessageId


def encode_body(message: MessageId, size: int) -> bytes:
    """Return a body of ``size`` bytes, or a little more if the head needs it."""
    head = f"{message.producer} {message.sequence} ".encode()
    filling = bytes(33 + (message.sequence * 7 + i) % 90 for i in range(max(0, size - len(head) - 9)))
    rest = head + filling
    return b"%08x " % zlib.crc32(rest) + rest


def decode_body(body: bytes) -> MessageId | None:
    """Whose message it is; None if a byte is missing or changed."""
    checksum, _, rest = body.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(rest):
        return None
    producer, sequence, _ = rest.split(b" ", 2)
    return MessageId(producer.decode(), int(sequence))
