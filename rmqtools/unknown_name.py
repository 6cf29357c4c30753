"""The texts of errors about an unknown name, with the nearest known one: "did you mean 'topic'?"."""

from collections.abc import Iterable
from difflib import get_close_matches


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the text of an error: ``unknown KIND 'NAME' (did you mean 'x'?)``, or with all known names."""
    return f"unknown {kind} {name!r} ({name_hint(name, sorted(known))})"


def name_hint(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` with the nearest known name, or a list of all known names."""
    names = [*known]
    nearest = nearest_name(name, names)
    return f"known: {', '.join(names)}" if nearest is None else f"did you mean {nearest!r}?"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, in whatever case; None: none is alike."""
    by_lower: dict[str, str] = {}
    for one in known:
        by_lower.setdefault(one.lower(), one)
    near = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None
