"""What both clients must carry unharmed, and how to compare what each of them says about a message."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.java_peer import PeerMessage

COMPRESSIONS = (None, "ZLIB", "LZ4", "ZSTD")
# bits of sysFlag that stay when the Java client, having decompressed, clears COMPRESSED_FLAG
COMPRESSION_BITS = {None: 0, "LZ4": 1 << 8, "ZSTD": 2 << 8, "ZLIB": 3 << 8}

BODIES = (
    b"a",
    b"\x00",
    b"\x00\x00middle\x00\x00",
    bytes(range(256)),
    bytes(5_000),
    "Zażółć jaźń · Привет · שלום · مرحبا · नमस्ते · 你好 · こんにちは · 안녕 · 😀👩‍👩‍👧 · \u2028".encode(),
    random.Random(0).randbytes(70_000),
    random.Random(1).randbytes(1_000) * 700,
)
TAGS = (None, "TagA", "标签", "tag with spaces")
KEYS = ((), ("order-1",), ("k1", "ключ-2", "🔑"))
PROPERTIES: tuple[dict[str, str], ...] = (
    {},
    {"a": "1"},
    {"имя": "Zażółć 😀", "spaced name": " x ", "line": "a\nb", "quote": "\"'\\"},
)

# what client and broker add to a message; MIN_OFFSET and MAX_OFFSET are the Java consumer's own
SYSTEM_PROPERTIES = frozenset(
    {"KEYS", "TAGS", "UNIQ_KEY", "WAIT", "CLUSTER", "MSG_REGION", "TRACE_ON", "MIN_OFFSET", "MAX_OFFSET"}
)


def peer_messages(topic: str) -> Iterator[PeerMessage]:
    """Every body with every compression; tags, keys, properties and flag vary along."""
    i = 0
    for body in BODIES:
        for compress in COMPRESSIONS:
            yield PeerMessage(
                topic=topic,
                body=body,
                compress=compress,
                tags=TAGS[i % len(TAGS)],
                keys=KEYS[i % len(KEYS)],
                properties=PROPERTIES[i // 2 % len(PROPERTIES)],
                flag=i * 1_000_003 % 2**31,
            )
            i += 1


def position(row: Mapping[str, Any]) -> tuple[str, int, int]:
    """Where a message is stored."""
    return row["brokerName"], row["queueId"], row["queueOffset"]


def user_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """What the sender set."""
    return {name: value for name, value in properties.items() if name not in SYSTEM_PROPERTIES}


def content(message: PeerMessage) -> dict[str, Any]:
    """What of a message must arrive."""
    return {
        "body": message.body.hex(),
        "tags": message.tags,
        "keys": " ".join(message.keys) or None,
        "properties": dict(message.properties),
    }


def dumped_content(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a row that the Java consumer printed."""
    return {
        **{name: row[name] for name in ("body", "tags", "keys")},
        "properties": user_properties(row["properties"]),
    }
