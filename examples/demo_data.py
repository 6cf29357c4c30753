"""The demo's data set: 12,000 messages with difficult content, always the same.

    python -m examples.demo_data

prints a summary and its SHA-256. If you change a row, change :data:`DATA_SHA256` too.

Every row has a ``seq`` property, its number in five digits, except for the rows without properties.
All values come from ``random()`` and ``randbytes()`` of one seeded generator and are computed with whole
numbers only, so that every Python and every machine makes the same bytes.
"""

import hashlib
import random
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

ROWS: Final = 12_000
SEQUENCE: Final = "seq"
MEBIBYTE: Final = 1024 * 1024
DATA_SHA256: Final = "bfd14a960f8662301ebfa31cb3ea417a761c7544a0bc4e5a2e45c1d252caf7eb"

_SEED: Final = 20_260_101

# One word or more per script. Gothic and emoji lie outside the basic plane: two chars each in Java.
SCRIPTS: Final = {
    "Latin": ("grüße", "señor", "čaj", "ﬁn"),
    "Greek": ("λόγος", "εἰρήνη"),
    "Cyrillic": ("мир", "їжак"),
    "Armenian": ("խաղաղություն",),
    "Hebrew": ("שלום",),
    "Arabic": ("سلام",),
    "Devanagari": ("नमस्ते",),
    "Bengali": ("শান্তি",),
    "Tamil": ("வணக்கம்",),
    "Thai": ("สวัสดี",),
    "Georgian": ("მშვიდობა",),
    "Ethiopic": ("ሰላም",),
    "Khmer": ("សួស្តី",),
    "Cherokee": ("ᎣᏏᏲ",),
    "Hangul": ("안녕",),
    "Hiragana": ("ひらがな",),
    "Katakana": ("カタカナ",),
    "Han": ("平和", "消息隊列"),
    "Gothic": ("𐌲𐌿𐍄𐌰",),
    "Emoji": ("🐇🚀", "👩🏽‍💻"),
}
_WORDS: Final = tuple(word for words in SCRIPTS.values() for word in words)

# Texts that separators, trimming or escaping could break. \x01 and \x02 are RocketMQ's own separators.
_ODD_VALUES: Final = (
    " ",
    " both ends ",
    "two\nlines",
    "nul\0inside",
    "a=b;c,d|e:f",
    "\\x41",
    '{"a":[1]}',
    "\x7f",
)

_LARGE_BODIES: Final = {
    1000: MEBIBYTE,  # random bytes, no compression helps
    2000: MEBIBYTE,  # text
    3000: MEBIBYTE,  # NULs only
    **{4000 + 500 * step: 100_000 * (step + 1) for step in range(9)},
}


class DemoRow(NamedTuple):
    """One message as a user writes it; hashable. ``properties`` are the user's own, sorted by name."""

    body: bytes
    tags: str | None
    keys: str | None
    properties: tuple[tuple[str, str], ...]

    @property
    def sequence(self) -> int | None:
        """The ``seq`` property; None for a row that has none."""
        text = dict(self.properties).get(SEQUENCE)
        return int(text) if text is not None and text.isascii() and text.isdigit() else None


def make_rows() -> list[DemoRow]:
    """Make the whole data set (about 30 MB), in the order of ``seq``."""
    draw = _Draw(_SEED)
    return [_make_row(number, draw) for number in range(ROWS)]


def data_sha256(rows: Iterable[DemoRow]) -> str:
    """Return the SHA-256 of a data set in its canonical form, order included.

    Every text is its UTF-8 after its length as i64 (big-endian, -1: null); a row is body, tags, keys, the
    number of its properties as i64, then each name and value in the order of their names.
    """
    digest = hashlib.sha256()
    for row in rows:
        for part in (row.body, row.tags, row.keys):
            _add(digest, part)
        digest.update(struct.pack(">q", len(row.properties)))
        for pair in sorted(row.properties):
            for text in pair:
                _add(digest, text)
    return digest.hexdigest()


def _add(digest: "hashlib._Hash", part: bytes | str | None) -> None:
    data = part.encode() if isinstance(part, str) else part
    digest.update(struct.pack(">q", -1 if data is None else len(data)))
    digest.update(data or b"")


class _Draw:
    """The random values."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, below: int) -> int:
        return int(self._random.random() * below)

    def size(self) -> int:
        """1 B to 16 KiB, every power of two as likely as the next."""
        least: int = 1 << self.number(14)
        return least + self.number(least)

    def word(self) -> str:
        return _WORDS[self.number(len(_WORDS))]

    def words(self, separator: str, most: int) -> str:
        return separator.join(self.word() for _ in range(1 + self.number(most)))

    def bytes(self, size: int) -> bytes:
        return self._random.randbytes(size)


def _make_row(number: int, draw: _Draw) -> DemoRow:
    if number % 40 == 5:  # 300 rows that are equal in everything
        return DemoRow(b"the same body", None, None, ())
    tags = None if number % 10 == 3 else draw.word()
    keys = None if number % 10 == 6 else draw.words(" ", 3)
    properties = () if number % 40 == 11 else _make_properties(number, draw)
    return DemoRow(_make_body(number, draw), tags, keys, properties)


def _make_properties(number: int, draw: _Draw) -> tuple[tuple[str, str], ...]:
    own = {draw.words("-", 2): draw.words(" ", 4) for _ in range(draw.number(4))}
    odd = {"odd": _ODD_VALUES[draw.number(len(_ODD_VALUES))]} if number % 3 == 0 else {}
    return tuple(sorted({**own, **odd, SEQUENCE: f"{number:05d}"}.items()))


def _make_body(number: int, draw: _Draw) -> bytes:
    size = _LARGE_BODIES.get(number)
    if size is None:
        return _make_small_body(number, draw)
    if number == 2000:
        return (draw.words(" ", 50).encode() * size)[:size]
    return bytes(size) if number == 3000 else draw.bytes(size)


def _make_small_body(number: int, draw: _Draw) -> bytes:
    match number % 8:
        case 0:
            return bytes([number // 8 % 256])  # every single byte
        case 1:
            return bytes((start + number) % 256 for start in range(256))  # every byte value
        case 2:
            return bytes(draw.size())  # NULs only
        case 3 | 4:
            return draw.bytes(draw.size())
        case 5:
            return b"the same body"
        case 6:
            return draw.words(" ", 40).encode()
        case _:  # over 4 KiB: sent compressed
            return (draw.words("\0", 20) * 100).encode()


def main() -> None:
    """Print a summary of the data set."""
    rows = make_rows()
    print(f"{len(rows):,} rows, {sum(len(row.body) for row in rows):,} bytes in bodies")
    print(f"largest body {max(len(row.body) for row in rows):,} bytes, {len(set(rows)):,} different rows")
    print(f"SHA-256 {data_sha256(rows)}")


if __name__ == "__main__":
    main()
