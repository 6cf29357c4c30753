"""Files of Java's Properties, as servers read their settings."""

from collections.abc import Mapping


def format_properties(settings: Mapping[str, object]) -> str:
    """Return the text of a file with these settings, a line each; values may have any character."""
    return "".join(f"{key}={_escape(str(value))}\n" for key, value in settings.items())


def _escape(value: str) -> str:
    """Write a value for Java's Properties: a backslash escapes, the file is Latin-1."""
    units = value.encode("utf-16-be")
    codes = (int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2))
    return "".join(chr(c) if 32 <= c < 127 and c != 92 else f"\\u{c:04x}" for c in codes)
