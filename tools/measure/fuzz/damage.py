"""Damage to bytes, by chance: what a broken or hostile peer might send that nearly looks right."""

import random
import struct
from collections.abc import Callable, Sequence

_NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**16, 0x7FFF, 255)
_PIECES = (
    b"",
    b"{",
    b"}",
    b"[]",
    b'"',
    b"\x00",
    b"\x01",
    b"\x02",
    b"\xff",
    b"-1",
    b"1e999",
    b"null",
    b":",
    b",",
    b" ",
)
_MOST_DAMAGES = 4


def damaged(chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, with one to four damages."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, _MOST_DAMAGES)):
        chance.choice(_DAMAGES)(chance, data, seeds)
    return bytes(data)


def _place(chance: random.Random, data: bytearray, room: int = 1) -> int:
    return chance.randrange(max(1, len(data) - room + 1))


def _flip(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[_place(chance, data)] ^= 1 << chance.randrange(8)


def _number(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    width, form = chance.choice([(2, ">h"), (4, ">i"), (8, ">q")])
    at = _place(chance, data, width)
    limit = 1 << (8 * width - 1)
    number = chance.choice(_NUMBERS) + chance.choice((0, 0, 1, -1))
    data[at : at + width] = struct.pack(form, max(-limit, min(limit - 1, number)))


def _piece(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _place(chance, data)
    data[at : at + chance.randrange(3)] = chance.choice(_PIECES)


def _cut(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _place(chance, data)
    del data[at : at + chance.randint(1, 40)]


def _end(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_place(chance, data) :]


def _repeat(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _place(chance, data)
    data[at:at] = bytes(data[at : at + chance.randint(1, 60)]) * chance.randint(1, 5)


def _join(chance: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = chance.choice(seeds)
    at = _place(chance, data)
    data[at:] = other[chance.randrange(max(1, len(other))) :]


_Damage = Callable[[random.Random, bytearray, Sequence[bytes]], None]
_DAMAGES: tuple[_Damage, ...] = (_flip, _flip, _number, _number, _piece, _cut, _end, _repeat, _join)
