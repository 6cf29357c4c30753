"""A text that must not be seen: passwords, secret keys, tokens."""

from typing import Self


class Secret(str):
    """A secret text. To everything that prints, formats, encodes or copies it, it is ``***``.

    So it shows neither in ``repr`` nor in logs, JSON, ``dataclasses.asdict`` or exceptions. :meth:`reveal`
    returns the text itself. Secrets compare and hash by the text itself. Pickles contain it.
    """

    __slots__ = ("_text",)

    _text: str

    def __new__(cls, text: str) -> Self:
        """Hide a text; a secret stays as it is."""
        self = super().__new__(cls, "***" if text else "")
        self._text = reveal(text)
        return self

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self._text == reveal(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._text)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self._text,)


def reveal(text: str) -> str:
    """Return a text itself, whether it is a :class:`Secret` or not."""
    return text.reveal() if isinstance(text, Secret) else text
