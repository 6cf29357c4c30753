"""The options of ``format("rocketmq")``: one table, from which checks, errors and documentation come.

Spark hands a source all options as text, their names in lower case, and does not say yet whether it is
going to read or to write: :func:`parse_options` checks names and values, :mod:`spark_connector.roles` what
belongs together.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, Final, TypeAlias

from rmqtools.errors import ConfigError
from spark_connector.offsets import EARLIEST, LATEST, OffsetSpec, parse_offset_spec


class Where(Enum):
    """What an option is for."""

    BOTH = "reads and writes"
    READ = "reads"
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


def _parse_count(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(f"want 1 or more, got {number}")
    return number


def _parse_name(text: str) -> str:
    if not (name := text.strip()):
        raise ValueError("it is empty")
    return name


def _parse_names(text: str) -> tuple[str, ...]:
    names = [_parse_name(part) for part in text.split(",")]
    if len(set(names)) != len(names):
        raise ValueError("a name is given twice")
    return tuple(names)


def _parse_start(text: str) -> OffsetSpec:
    spec = parse_offset_spec(text)
    if spec == "latest" or _holds(spec, LATEST):
        raise ValueError("a batch that starts at the latest offset reads nothing: give earliest or offsets")
    return spec


def _parse_end(text: str) -> OffsetSpec:
    spec = parse_offset_spec(text)
    if spec == "earliest" or _holds(spec, EARLIEST):
        raise ValueError("a batch that ends at the earliest offset reads nothing: give latest or offsets")
    return spec


def _holds(spec: OffsetSpec, offset: int) -> bool:
    return not isinstance(spec, str) and offset in spec.values()


_OFFSETS: Final = 'earliest, latest or JSON {"topic":{"broker":{"queue":offset}}}'

OPTIONS: Final = (
    Option(
        "nameServer",
        "host:port, several separated by ;",
        _parse_name,
        None,
        "The name servers of the cluster. Required, unless the driver has NAMESRV_ADDR in its environment.",
        Where.BOTH,
        "name_server",
    ),
    Option(
        "namespace",
        "text",
        _parse_name,
        None,
        "The namespace that topics and groups are in.",
        Where.BOTH,
        "namespace",
    ),
    Option(
        "brokerAddressMap",
        "from=to pairs separated by commas",
        str,
        None,
        "Replaces broker addresses of the route before connecting: Docker, NAT.",
        Where.BOTH,
        "broker_address_map",
    ),
    Option(
        "accessKey",
        "text",
        _parse_name,
        None,
        "The user name for access control.",
        Where.BOTH,
        "access_key",
        secret=True,
    ),
    Option(
        "secretKey",
        "text",
        _parse_name,
        None,
        "The password that goes with it.",
        Where.BOTH,
        "secret_key",
        secret=True,
    ),
    Option(
        "tls.*",
        "as the client's tls_ settings",
        str,
        None,
        "Encrypted connections: tls.enable, tls.caFile, tls.certFile, tls.keyFile, tls.checkHostname.",
        Where.BOTH,
        "tls_",
        secret=True,
    ),
    Option(
        "rocketmq.*",
        "as the client's settings",
        str,
        None,
        "Any other setting of the client, e.g. rocketmq.requestTimeout=10 (seconds).",
        Where.BOTH,
        "",
        secret=True,
    ),
    Option(
        "topic",
        "a name",
        _parse_name,
        None,
        "The topic to read; or to write all rows to, over a column topic.",
        Where.BOTH,
    ),
    Option("topics", "names separated by commas", _parse_names, None, "Several topics to read.", Where.READ),
    Option(
        "startingOffsets",
        _OFFSETS,
        _parse_start,
        "earliest",
        "Where to start, per queue; -2 in JSON is a queue's earliest offset.",
        Where.READ,
    ),
    Option(
        "endingOffsets",
        _OFFSETS,
        _parse_end,
        "latest",
        "Where to stop, per queue, not included; -1 in JSON is a queue's latest offset.",
        Where.READ,
    ),
    Option(
        "minPartitions",
        "a whole number",
        _parse_count,
        None,
        "Split large queues until there are about this many Spark partitions; else one per queue.",
        Where.READ,
    ),
    Option(
        "maxRecordsPerPartition",
        "a whole number",
        _parse_count,
        None,
        "Split queues so that no Spark partition has more messages.",
        Where.READ,
    ),
    Option(
        "sendTimeoutMs",
        "a whole number of milliseconds",
        lambda text: str(_parse_count(text) / 1000),
        None,
        "How long a row may take to be stored, all attempts together; the client's default is 3 seconds.",
        Where.WRITE,
        "send_timeout",
    ),
    Option(
        "batchBytes",
        "a whole number",
        lambda text: str(_parse_count(text)),
        None,
        "How many bytes of rows one request carries; the client's default is 256 KiB.",
        Where.WRITE,
        "max_batch_bytes",
    ),
    Option(
        "path", "text", str, None, "Accepted and not used: load(path) and save(path) set it.", Where.SPARK
    ),
    Option("checkpointLocation", "text", str, None, "Spark's own; accepted everywhere.", Where.SPARK),
)

_BY_NAME: Final = {option.name.lower(): option for option in OPTIONS if option.prefix is None}
_FAMILIES: Final = tuple(option for option in OPTIONS if option.prefix is not None)


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


GivenOptions: TypeAlias = tuple[GivenOption, ...]


def parse_options(raw: Mapping[str, str]) -> GivenOptions:
    """Check names and values.

    Raises:
        ConfigError: an unknown name (with the nearest known one), or a value that is none.
    """
    return tuple(_parse_option(name, text) for name, text in raw.items())


def option_values(given: GivenOptions) -> dict[str, Any]:
    """The value of every single option by name: the one given, else the default."""
    defaults = {
        option.name: None if option.default is None else option.parse(option.default)
        for option in _BY_NAME.values()
    }
    return defaults | {one.option.name: one.value for one in given if one.option.prefix is None}


def nearest_name(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?``, or all there are."""
    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]!r}?" if near else f"known: {', '.join(by_lower.values())}"


def describe_options() -> str:
    """The table as Markdown, for the documentation."""
    head = (
        '# Options of `format("rocketmq")`\n\n| option | for | value | default | |\n|---|---|---|---|---|\n'
    )
    return head + "".join(
        f"| `{one.name}` | {one.where.value} | {one.kind} | {one.default or ''} | {one.help} |\n"
        for one in OPTIONS
    )


def _parse_option(name: str, text: str) -> GivenOption:
    option, key = _find_option(name)
    try:
        return GivenOption(option, option.parse(text), key)
    except ValueError as error:
        shown = "***" if option.secret else repr(text)
        raise ConfigError(f"option {option.name!r} = {shown}: {error}; want {option.kind}") from None


def _find_option(name: str) -> tuple[Option, str]:
    lower = name.lower()
    if lower in _BY_NAME:
        return _BY_NAME[lower], ""
    for option in _FAMILIES:
        assert option.prefix is not None
        if lower.startswith(option.prefix) and lower != option.prefix:
            return option, name[len(option.prefix) :]
    hint = nearest_name(name, [option.name for option in OPTIONS])
    raise ConfigError(f"unknown option {name!r} for format rocketmq ({hint})")
