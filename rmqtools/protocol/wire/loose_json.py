"""Parses the JSON of the servers, which is not always valid JSON.

fastjson2 writes keys without quotes if they are not texts: ``{0:"addr"}``,
``{{"brokerName":"b"}:{"maxOffset":9}}``. Here they become texts, so that ``{0:1}`` equals ``{"0":1}``.
Source of the rule: RemotingSerializable (Java client), frames recorded from a 5.5.0 name server and broker.
"""

import json
import re
from typing import Any

from rmqtools.errors import ProtocolError

MAX_DEPTH = 64
MAX_CONTAINERS = 256 * 1024  # objects and arrays of a body: a frame full of statistics has fewer
MAX_VALUES = 768 * 1024  # the same, with all other values

_FREELY_BYTES = 64 * 1024  # shorter bodies cannot hold enough values to matter
_NESTING = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]', re.DOTALL)
_QUOTE = ord('"')
_FLAT = re.compile(r"[{\[][^{}\[\]]*+[}\]]")
_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
        (?P<string> "(?:[^"\\]|\\.)*+" )
      | (?P<scalar> -?[0-9][0-9.eE+-]*+ | true | false | null )
      | (?P<mark> [{}\[\]:,] )
    )""",
    re.VERBOSE | re.DOTALL,
)


def parse_json(data: bytes) -> Any:
    """Parse a body; all keys become texts.

    Raises:
        ProtocolError: not UTF-8, neither JSON nor its loose form, nested deeper than ``MAX_DEPTH``, or more
            values than the limits above: two bytes of a body can take a hundred of memory.
    """
    try:
        _check_size(data)
        text = data.decode()
        try:
            return json.loads(text)
        except ValueError:
            return _LooseParser(text).parse()
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"body of {len(data)} bytes is no JSON: {error}: {data[:200]!r}") from error


def _check_size(data: bytes) -> None:
    """Refuse what would take much memory or a deep stack, by the marks in the bytes."""
    containers = data.count(b"{") + data.count(b"[")
    values = containers + data.count(b",") if len(data) > _FREELY_BYTES else 0
    if values and (containers > MAX_CONTAINERS or values > MAX_VALUES):
        raise ValueError(
            f"{containers} objects and arrays, {values} values: at most {MAX_CONTAINERS} and {MAX_VALUES} "
            "are read"
        )
    if containers > MAX_DEPTH:
        _check_depth(data)


def _check_depth(data: bytes) -> None:
    depth = 0
    for found in _NESTING.finditer(data):
        mark = data[found.start()]
        if mark in b"{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"nested deeper than {MAX_DEPTH}")
        elif mark != _QUOTE:
            depth -= 1


class _LooseParser:
    """Recursive descent over tokens, each read once. Every error is a ValueError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def parse(self) -> Any:
        value = self._value(*self._next(), depth=0)
        if self._text[self._position :].strip(" \t\r\n"):
            raise ValueError(f"more than one value, at {self._position}")
        return value

    def _next(self) -> tuple[str, str]:
        """Kind and text of the next token."""
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise ValueError(f"no token at {self._position}")
        self._position = match.end()
        kind = match.lastgroup or ""
        return kind, match[kind]

    def _value(self, kind: str, token: str, depth: int) -> Any:
        if kind != "mark":
            return json.loads(token)
        if depth >= MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH}")
        if token in ("{", "[") and (flat := self._flat()) is not None:
            return flat
        if token == "{":
            return self._object(depth + 1)
        if token == "[":
            return self._array(depth + 1)
        raise ValueError(f"{token!r} before {self._position}")

    def _flat(self) -> Any:
        """Read an object or array that holds no other in one step; None: it is not strict JSON."""
        start = self._position - 1
        found = _FLAT.match(self._text, start)
        if found is None:
            return None
        try:
            value = json.loads(found[0])
        except ValueError:  # a key without quotes, or a text with a bracket in it
            return None
        self._position = found.end()
        return value

    def _object(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        kind, token = self._next()
        while token != "}" or kind != "mark":
            key = self._key(kind, token, depth)
            self._expect(":")
            items[key] = self._value(*self._next(), depth=depth)
            if self._expect(",", "}") == "}":
                break
            kind, token = self._next()
        return items

    def _array(self, depth: int) -> list[Any]:
        items: list[Any] = []
        kind, token = self._next()
        while token != "]" or kind != "mark":
            items.append(self._value(kind, token, depth))
            if self._expect(",", "]") == "]":
                break
            kind, token = self._next()
        return items

    def _key(self, kind: str, token: str, depth: int) -> str:
        """Return a key: a text, or the source text of a number or an object."""
        start = self._position - len(token)
        value = self._value(kind, token, depth)
        return value if isinstance(value, str) else self._text[start : self._position]

    def _expect(self, *tokens: str) -> str:
        kind, token = self._next()
        if kind != "mark" or token not in tokens:
            raise ValueError(f"{token[:20]!r} before {self._position}, want {' or '.join(tokens)}")
        return token
