"""JSON as the servers write it, which is not always JSON.

fastjson2 leaves keys that are no text as they are: ``{0:"addr"}``, ``{{"brokerName":"b"}:{"maxOffset":9}}``.
Such a key becomes its own text here, so that ``{0:1}`` and ``{"0":1}`` read alike.
Source of the rule: RemotingSerializable (Java client), frames recorded from a 5.5.0 name server and broker.
"""

import json
import re
from typing import Any

from rmqtools.errors import ProtocolError

MAX_DEPTH = 64

_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
        (?P<string> "(?:[^"\\]|\\.)*+" )
      | (?P<scalar> -?[0-9][0-9.eE+-]*+ | true | false | null )
      | (?P<mark> [{}\[\]:,] )
    )""",
    re.VERBOSE | re.DOTALL,
)


def parse_json(data: bytes) -> Any:
    """Read a body; all keys are text.

    Raises:
        ProtocolError: no UTF-8, neither JSON nor its loose form, or nested deeper than 64 (loose form).
    """
    try:
        text = data.decode()
        try:
            return json.loads(text)
        except ValueError:
            return _LooseParser(text).parse()
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"body of {len(data)} bytes is no JSON: {error}: {data[:200]!r}") from error


class _LooseParser:
    """Recursive descent over tokens; each is looked at once. Every fault is a ValueError."""

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
        if token == "{":
            return self._object(depth + 1)
        if token == "[":
            return self._array(depth + 1)
        raise ValueError(f"{token!r} before {self._position}")

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
        """A text; or the very text of a number or an object."""
        start = self._position - len(token)
        value = self._value(kind, token, depth)
        return value if isinstance(value, str) else self._text[start : self._position]

    def _expect(self, *tokens: str) -> str:
        kind, token = self._next()
        if kind != "mark" or token not in tokens:
            raise ValueError(f"{token[:20]!r} before {self._position}, want {' or '.join(tokens)}")
        return token
