"""One row of the option table, and the parsers of option values."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

DURATION: Final = "a time such as 500ms, 30s, 15m, 1h; a bare number is milliseconds"
LARGEST: Final = 2**63 - 1  # that Spark's JVM and brokers can take
_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST_DAYS: Final = 36_500  # a process cannot wait three times as long


class Where(Enum):
    """The operations that an option applies to."""

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
        name: as users write it; a name that ends in ``.*`` stands for all names with its prefix.
        kind: the expected value, in words.
        parse: text to value; raises ValueError, to which :func:`parse_options` adds the option.
        default: as users would write it; None: no default.
        help: one sentence.
        where: the operations it applies to.
        setting: the client setting that it sets; for a prefix, the setting's prefix.
        secret: whether its value must not appear in any text.
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
        """The prefix of a family's names; None: a single option."""
        return self.name[:-1] if self.name.endswith(".*") else None


@dataclass(frozen=True, slots=True)
class GivenOption:
    """An option with its given value; ``key`` is the part of the name after a family's prefix."""

    option: Option
    value: Any
    key: str = ""

    @property
    def name(self) -> str:
        """The option's name as given."""
        return self.option.name.replace("*", self.key)

    def __repr__(self) -> str:
        """Without secrets."""
        return f"{self.name}={'***' if self.option.secret else repr(self.value)}"


GivenOptions: TypeAlias = tuple[GivenOption, ...]


def parse_count(text: str) -> int:
    """Parse a whole number from 1 on."""
    if (number := int(text)) < 1:
        raise ValueError(f"want 1 or more, got {number}")
    if number > LARGEST:
        raise ValueError(f"want at most {LARGEST}")
    return number


def parse_duration(text: str) -> float:
    """Parse a duration, in seconds.

    Source of the rule: JavaUtils.timeStringAs (Spark).
    """
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or (unit := found[2] or "ms") not in _MS:
        raise ValueError("it is no time")
    if (ms := int(found[1]) * _MS[unit]) > _LONGEST_DAYS * _MS["d"]:
        raise ValueError(f"want at most {_LONGEST_DAYS}d")
    return ms / 1000


def parse_name(text: str) -> str:
    """Parse a text that is not empty."""
    if not (name := text.strip()):
        raise ValueError("it is empty")
    return name


def parse_address_map(text: str) -> str:
    """Return rules as text. Spark makes every option a text, so a function arrives as its repr: refused."""
    if text.lstrip().startswith("<") and " at 0x" in text:
        raise ValueError(
            "a function cannot travel in an option of Spark: write the rules as text, from=to,..."
        )
    return text


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas, without repeats."""
    names = [parse_name(part) for part in text.split(",")]
    if len(set(names)) != len(names):
        raise ValueError("a name is given twice")
    return tuple(names)


def parse_flag(text: str) -> bool:
    """Parse true or false, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("want true or false")
    return word == "true"


@dataclass(frozen=True, slots=True)
class OneOf:
    """Parses one of several words, in any case. Picklable."""

    words: tuple[str, ...]

    def __call__(self, text: str) -> str:
        """Return the word in lower case."""
        if (word := text.strip().lower()) not in self.words:
            raise ValueError("it is none of them")
        return word
