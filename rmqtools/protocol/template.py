"""Requests that differ in a few numbers: all else of their JSON header is written once.

What a pull costs is mostly its header, and the next pull of a queue differs only in where it begins.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from rmqtools.model.codes import SerializeType
from rmqtools.protocol.command import RemotingCommand, encode_json_header
from rmqtools.protocol.framing import encode_frame

_MARK = "\ue000"  # for private use: more of them than any value holds mark the places of the numbers


class Request(Protocol):
    """What a connection can write."""

    @property
    def code(self) -> int:
        """The request code."""

    def encode(self, opaque: int) -> bytes:
        """The whole frame, under this opaque."""


class FilledRequest(NamedTuple):
    """A template with its numbers."""

    code: int
    form: str
    numbers: tuple[int, ...]

    def encode(self, opaque: int) -> bytes:
        """See :meth:`Request.encode`."""
        header = self.form % (*self.numbers, opaque)
        return encode_frame(SerializeType.JSON, header.encode(), b"")


class RequestTemplate:
    """A request without a body in which the fields ``names`` hold other numbers each time."""

    def __init__(self, command: RemotingCommand, names: Sequence[str]) -> None:
        fixed = {name: value for name, value in command.ext_fields.items() if name not in names}
        mark = _MARK
        while any(mark in text for pair in fixed.items() for text in pair if text):
            mark += _MARK
        marked = replace(command, ext_fields=fixed | dict.fromkeys(names, mark), opaque=0)
        text = encode_json_header(marked).decode().replace("%", "%%").replace(mark, "%d")
        before, _, after = text.rpartition('"opaque":0,')
        self._code = command.code
        self._form = f'{before}"opaque":%d,{after}'

    def fill(self, *numbers: int) -> FilledRequest:
        """The request with these numbers, in the order of the names."""
        return FilledRequest(self._code, self._form, numbers)
