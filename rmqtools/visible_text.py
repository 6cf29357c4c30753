"""Text of others made visible: no character of it acts on a terminal, reorders a line or forges one.

Names, keys, tags, bodies and errors come from whoever may send, join a group or answer as a server. Every
command prints them by these functions.
"""

import re

# C0 and C1 controls, bidirectional marks, separators of lines and paragraphs, surrogates
_BEYOND_ASCII = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_ACTING = re.compile(f"[\x00-\x1f{_BEYOND_ASCII}]")
_ACTING_IN_JSON = re.compile(f"[{_BEYOND_ASCII}]")


def visible(text: str) -> str:
    r"""Return one line in which such characters are escaped: ``\x1b``, ``\n``, ``\u202e``."""
    return _ACTING.sub(_escaped, text)


def visible_lines(text: str, *, indent: str = "  ") -> str:
    """Return lines, each visible; those after the first are indented, so that none looks like one of ours."""
    return f"\n{indent}".join(map(visible, text.split("\n")))


def visible_bytes(data: bytes) -> bytes:
    r"""Return UTF-8 made visible; bytes that are none are shown as ``\xff``."""
    return visible(data.decode(errors="backslashreplace")).encode()


def visible_json(text: str) -> str:
    """Return the text of a JSON value with the same meaning; what json.dumps leaves is escaped."""
    return _ACTING_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
