"""The body of BATCH_ACK_MESSAGE (brokers 5.1.3 or newer): acknowledges many popped messages of one broker.

Messages of one answer and one queue share a check point. Each is a bit, counted from the check point's queue
offset on. The bits are the bytes of a Java BitSet, lowest first, in base64:

    {"brokerName": name, "acks": [{"c": group, "t": topic, "r": topic type, "so": check point's queue offset,
     "q": queue id, "rq": revive queue id, "pt": pop time, "it": invisible time, "b": bits}, ...]}

Source of the rule: MQClientAPIImpl.batchAckMessageAsync, BatchAck (Java client 5.5.0).
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from json import dumps, loads
from typing import Any, NamedTuple

from rmqtools.errors import ProtocolError
from rmqtools.protocol.headers.pop_extra_info import PopExtraInfo, parse_extra_info, real_topic

_MOST_BITS = 4096  # of one check point: a filter may skip many messages


class BatchAckBody(NamedTuple):
    """A body, and the places of the messages that it leaves out; None: it would leave out all."""

    body: bytes | None
    left_out: list[int]


def batch_ack_body(group: str, popped: Iterable[tuple[str, tuple[str, int] | None]]) -> BatchAckBody:
    """Return the body that acknowledges popped messages of one broker.

    It leaves out messages without a queue offset, and those 4096 or more offsets behind their check point.

    Args:
        group: wire name of the consumer group.
        popped: of each message, the wire name of the topic that was popped, and its extra info: the parts
            before the queue offset, and the queue offset; None: it has no queue offset.

    Raises:
        ProtocolError: a text is not an extra info.
    """
    bits_of: dict[tuple[str, str], int] = {}
    info_of: dict[str, PopExtraInfo] = {}
    left_out: list[int] = []
    for place, (topic, parts) in enumerate(popped):
        if parts is None:
            left_out.append(place)
            continue
        head, offset = parts
        info = info_of.get(head)
        if info is None:
            info = info_of[head] = parse_extra_info(head)
        bit = offset - info.start_offset
        if 0 <= bit < _MOST_BITS:
            bits_of[topic, head] = bits_of.get((topic, head), 0) | 1 << bit
        else:
            left_out.append(place)
    acks = [_ack(group, topic, info_of[head], bits) for (topic, head), bits in bits_of.items()]
    if not acks:
        return BatchAckBody(None, left_out)
    broker_name = next(iter(info_of.values())).broker_name
    return BatchAckBody(dumps({"brokerName": broker_name, "acks": acks}).encode(), left_out)


class BatchAck(NamedTuple):
    """The messages of one check point in a body; ``stored_in`` is the wire name of their topic."""

    group: str
    stored_in: str
    queue_id: int
    pop_time: int
    offsets: list[int]


def parse_batch_ack_body(body: bytes) -> list[BatchAck]:
    """Return what a body acknowledges, as a broker reads it.

    Raises:
        ProtocolError: it is no such body.
    """
    try:
        return [_parse_ack(ack) for ack in loads(body)["acks"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(f"body of BATCH_ACK_MESSAGE: {error!r}") from error


def _parse_ack(ack: Mapping[str, Any]) -> BatchAck:
    bits, start = int.from_bytes(b64decode(ack["b"]), "little"), int(ack["so"])
    offsets = [start + bit for bit in range(bits.bit_length()) if bits >> bit & 1]
    stored_in = real_topic(ack["r"], ack["t"], ack["c"])
    return BatchAck(ack["c"], stored_in, int(ack["q"]), int(ack["pt"]), offsets)


def _ack(group: str, topic: str, info: PopExtraInfo, bits: int) -> dict[str, str | int]:
    return {
        "c": group,
        "t": topic,
        "r": info.topic_type,
        "so": info.start_offset,
        "q": info.queue_id,
        "rq": info.revive_qid,
        "pt": info.pop_time,
        "it": info.invisible_time,
        "b": b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode(),
    }
