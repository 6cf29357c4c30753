"""What an option is, and the ways values are read from text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, TypeAlias


class Where(Enum):
    """What an option is for."""

    BOTH = "reads and writes"
    READ = "reads"
    BATCH = "batch reads"
    STREAM = "streaming reads"
    WRITE = "writes"
    SPARK = "Spark itself"


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table.

    Attributes:
        name: as users write it; one that ends in ``.*`` stands for all with its prefix.
        kind: what a value is, in words.
        parse: text to value; raises ValueError, which :func:`parse_options` completes.
        default: as users would write it; None: nothing.
        help: one sentence.
        where: what it is for.
        setting: the client setting it is handed to; with a prefix, the setting's own prefix.
        secret: its value appears in no text.
    """

    name: str
    kind: str
    parse: Callable[[str], Any]
    default: str | None
    help: str
    where: Where
    setting: str | None = None
    secret: bool = False

    @property
    def prefix(self) -> str | None:
        """What the names of a family begin with; None: a single option."""
        return self.name[:-1] if self.name.endswith(".*") else None


@dataclass(frozen=True, slots=True)
class GivenOption:
    """An option with the value somebody gave it; ``key`` is the rest of the name, of a family's member."""

    option: Option
    value: Any
    key: str = ""

    @property
    def name(self) -> str:
        """The option as it was named."""
        return self.option.name.replace("*", self.key)

    def __repr__(self) -> str:
        """Without secrets."""
        return f"{self.name}={'***' if self.option.secret else repr(self.value)}"


GivenOptions: TypeAlias = tuple[GivenOption, ...]


def parse_count(text: str) -> int:
    """A whole number from 1 on."""
    if (number := int(text)) < 1:
        raise ValueError(f"want 1 or more, got {number}")
    return number


def parse_name(text: str) -> str:
    """A text that is not empty."""
    if not (name := text.strip()):
        raise ValueError("it is empty")
    return name


def parse_names(text: str) -> tuple[str, ...]:
    """Names separated by commas, each once."""
    names = [parse_name(part) for part in text.split(",")]
    if len(set(names)) != len(names):
        raise ValueError("a name is given twice")
    return tuple(names)


def parse_flag(text: str) -> bool:
    """True or false, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("want true or false")
    return word == "true"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A parser of one of some words, in any case; travels between processes."""

    words: tuple[str, ...]

    def __call__(self, text: str) -> str:
        """The word, in small letters."""
        if (word := text.strip().lower()) not in self.words:
            raise ValueError("it is none of them")
        return word


def nearest_name(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?``, or all there are."""
    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]!r}?" if near else f"known: {', '.join(by_lower.values())}"
