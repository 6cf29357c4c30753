"""The texts of errors about an unknown name, with the nearest known one: "did you mean 'topic'?"."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_FEW = 12  # so many known names are listed
_NO_OTHERS: Mapping[str, str] = {}
_SEPARATORS = str.maketrans("", "", "_-.")


def unknown_name(kind: str, name: str, known: Iterable[str], others: Mapping[str, str] = _NO_OTHERS) -> str:
    """Return the text of an error: ``unknown KIND 'NAME' (did you mean 'x'?)``, or with known names.

    ``others``: names that other programs use, and the known name of each.
    """
    return f"unknown {kind} {name!r} ({name_hint(name, sorted(known), others)})"


def name_hint(name: str, known: Iterable[str], others: Mapping[str, str] = _NO_OTHERS) -> str:
    """Return ``did you mean 'x'?`` with the nearest known name; if none is alike, the known names.

    Of more than twelve names only the three nearest are listed.
    """
    names = [*known]
    nearest = {_plain(other): own for other, own in others.items() if own in names}.get(_plain(name))
    if (nearest := nearest or nearest_name(name, names)) is not None:
        return f"did you mean {nearest!r}?"
    if len(names) <= _FEW:
        return f"known: {', '.join(names)}"
    return (
        f"{len(names)} are known, the nearest: {', '.join(get_close_matches(name, names, n=3, cutoff=0.0))}"
    )


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, in whatever case; None: none is alike."""
    by_lower: dict[str, str] = {}
    for one in known:
        by_lower.setdefault(one.lower(), one)
    near = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def _plain(name: str) -> str:
    return name.lower().translate(_SEPARATORS)
