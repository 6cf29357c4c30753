"""Request templates: for requests that differ in few fields, the JSON header is encoded once.

The header is most of the cost of a small request, and the next request differs only in an offset or a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from json.encoder import encode_basestring
from typing import Protocol

from rmqtools.compiled import twins
from rmqtools.errors import ProtocolError
from rmqtools.model.codes import SerializeType
from rmqtools.model.frozen import maker_of
from rmqtools.protocol.wire.command import RemotingCommand, encode_json_header
from rmqtools.protocol.wire.framing import encode_frame

_MARK = "\ue000"  # private use; a row of them, longer than in any value, marks the places to fill


class Request(Protocol):
    """A request that a connection can write."""

    @property
    def code(self) -> int:
        """The request code."""

    def encode(self, opaque: int) -> bytes:
        """Return the whole frame with this opaque.

        Raises:
            ProtocolError: a text is not valid Unicode.
        """

    def command(self) -> RemotingCommand:
        """Return the request as a command, for signing."""


class RequestTemplate:
    """A request whose fields ``numbers``, and perhaps one ``text``, differ each time."""

    def __init__(self, command: RemotingCommand, numbers: Sequence[str], text: str | None = None) -> None:
        self._numbers, self._text = numbers, text
        self.fixed = {
            name: value for name, value in command.ext_fields.items() if name not in (*numbers, text)
        }
        self.code, self.flag = command.code, command.flag
        pieces = self._pieces_of(command)
        gaps = ["%d"] * len(numbers) + ["%s"] * (text is not None) + ["%d", ""]
        self.form = "".join(
            f"{piece.replace('%', '%%')}{gap}" for piece, gap in zip(pieces, gaps, strict=True)
        )
        self.pieces = tuple(piece.encode() for piece in pieces)

    def fill(self, *numbers: int, text: str | None = None, body: bytes = b"") -> "FilledRequest":
        """Return the request with these numbers, in the order of their names."""
        return filled_request(self, numbers, text, body)

    def fields(self, numbers: Sequence[int], text: str | None) -> Mapping[str, str | None]:
        """Return the header's fields with the values filled in."""
        filled = dict(zip(self._numbers, map(str, numbers), strict=True))
        return {**self.fixed, **filled} | ({} if self._text is None else {self._text: text})

    def _pieces_of(self, command: RemotingCommand) -> tuple[str, ...]:
        """Return the texts of the header between the values: quoted numbers, perhaps a text, the opaque."""
        mark = _MARK
        while any(mark in text for pair in self.fixed.items() for text in pair if text):
            mark += _MARK
        marked = dict.fromkeys(self._numbers, mark)
        texts = {} if self._text is None else {self._text: mark}
        empty = replace(command, ext_fields={**self.fixed, **marked, **texts}, opaque=0)
        try:
            header = encode_json_header(empty).decode()
        except UnicodeEncodeError as error:
            raise ProtocolError(f"request {command.code} holds text that is no Unicode: {error}") from error
        *pieces, rest = header.split(f'"{mark}"')
        before, _, after = rest.rpartition('"opaque":0,')
        pieces += [f'{before}"opaque":', f",{after}"]
        for number in range(len(self._numbers)):
            pieces[number] += '"'
            pieces[number + 1] = '"' + pieces[number + 1]
        return tuple(pieces)


@dataclass(frozen=True, slots=True)
class FilledRequest:
    """A template with its values."""

    template: RequestTemplate
    numbers: tuple[int, ...]
    text: str | None
    body: bytes | memoryview

    @property
    def code(self) -> int:
        """See :attr:`Request.code`."""
        return self.template.code

    def encode(self, opaque: int) -> bytes:
        """See :meth:`Request.encode`."""
        if twins is not None:
            plain: bytes | None = twins.fill_request(
                self.template.pieces, self.numbers, self.text, opaque, self.body
            )
            if plain is not None:
                return plain
        if self.text is None:
            header = self.template.form % (*self.numbers, opaque)
        else:
            header = self.template.form % (*self.numbers, encode_basestring(self.text), opaque)
        try:
            return encode_frame(SerializeType.JSON, header.encode(), self.body)
        except UnicodeEncodeError as error:
            raise ProtocolError(f"request {self.code} holds text that is no Unicode: {error}") from error

    def command(self) -> RemotingCommand:
        """See :meth:`Request.command`."""
        fields = self.template.fields(self.numbers, self.text)
        return RemotingCommand(self.code, fields, bytes(self.body), flag=self.template.flag)


filled_request = maker_of(FilledRequest)
