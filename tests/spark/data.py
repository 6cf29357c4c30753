"""Rows that are hard to carry, and what is compared of them."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pyspark.sql import Row

WRITE_SCHEMA = "body binary, tags string, keys string, properties map<string,string>"
USER_PROPERTIES = ("colour", "имя", "鍵", "seq", "empty-looking")

Message: TypeAlias = tuple[bytes, str | None, str | None, tuple[tuple[str, str], ...]]

HARD_ROWS: list[tuple[bytes, str | None, str | None, dict[str, str] | None]] = [
    (b"plain", "tag", "key", {"colour": "blue"}),
    (b"plain", "tag", "key", {"colour": "blue"}),
    (b"no properties", "t", "k", None),
    (b"empty properties", "t", "k", {}),
    (b"null tags", None, "k", {"colour": "red"}),
    (b"null keys", "t", None, {"colour": "red"}),
    (b"\x00", None, None, None),
    (b"\x00\x01\x02\x00", None, None, None),
    (bytes(range(256)), "t", "k1 k2 k3", {"имя": "значение", "鍵": "値😀", "empty-looking": " "}),
    *((bytes([value]), None, None, None) for value in range(256)),
    ("日本語 العربية עברית हिन्दी ไทย 한국어 ελληνικά ქართული".encode(), "метка", "ключ", {"colour": "ಬಣ್ಣ"}),
    (random.Random(1).randbytes(1024 * 1024), "large", "random", None),
    (b"compressible " * 80_000, "large", "repeated", {"colour": "grey"}),
]


def message(body: bytes, tags: str | None, keys: str | None, properties: Mapping[str, str] | None) -> Message:
    """What has to come back equal; of the properties, the user's."""
    own = {name: value for name, value in (properties or {}).items() if name in USER_PROPERTIES}
    return bytes(body), tags, keys, tuple(sorted(own.items()))


def messages_of(rows: Iterable[Row]) -> Counter[Message]:
    return Counter(message(row.body, row.tags, row.keys, row.properties) for row in rows)
