"""The settings of batch reads, made from the options."""

from dataclasses import dataclass
from typing import Final

from rmqtools.errors import ConfigError
from spark_connector.options.client_settings import refuse_options
from spark_connector.options.offsets import EARLIEST, LATEST, Bound, Times
from spark_connector.options.option import GivenOptions, Where
from spark_connector.options.option_table import option_values
from spark_connector.options.queue_json import is_named
from spark_connector.options.read_settings import ReadOptions, bound_of, read_options

_FOREVER_MS: Final = 2**63 - 1
_WITH_LOOK_UP: Final = (
    "topics",
    "topicPattern",
    "startingTimestamp",
    "endingTimestamp",
    "timeZone",
    "failOnDataLoss",
    "planningTimeout",
    "corruptBody",
    "columns",
    "includeProperties",
    "offsetMsgId",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """Keys and ids of messages to find in the brokers' key index, and the bounds of their store times."""

    keys: tuple[str, ...]
    ids: tuple[str, ...]
    begin_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """The settings of a batch read.

    Attributes:
        read: the settings that all reads share.
        start: start of the read.
        end: end of the read.
        look_up: keys and ids of the messages to read; None: all messages between start and end.
    """

    read: ReadOptions
    start: Bound
    end: Bound
    look_up: LookUp | None = None


def batch_options(given: GivenOptions) -> BatchOptions:
    """Make the settings of a batch read.

    Raises:
        ConfigError: options are missing, conflict, or belong to other operations.
    """
    refuse_options(given, Where.STREAM, doing="reading a batch")
    read = read_options(given)
    start = read.start or Bound("startingOffsets", "earliest")
    end = bound_of(option_values(given), "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
    assert end is not None  # the option has a default
    _refuse_nothing(start, word="latest", number=LATEST, remedy="start at earliest or at offsets")
    _refuse_nothing(end, word="earliest", number=EARLIEST, remedy="end at latest or at offsets")
    return BatchOptions(read=read, start=start, end=end, look_up=_look_up(given, start, end))


def _look_up(given: GivenOptions, start: Bound, end: Bound) -> LookUp | None:
    values = option_values(given)
    keys, ids = values["messageKeys"] or (), values["messageIds"] or ()
    if not keys and not ids:
        return None
    name = "messageKeys" if keys else "messageIds"
    for one in given:
        if one.option.where is Where.READ and one.option.name not in _WITH_LOOK_UP:
            raise ConfigError(
                f"options {name!r} and {one.name!r} exclude each other: messages are found in the brokers' "
                f"key index; drop {one.name!r}, or read the topic without {name!r} and filter"
            )
    return LookUp(keys=keys, ids=ids, begin_ms=_ms(start, 0), end_ms=_ms(end, _FOREVER_MS + 1) - 1)


def _ms(bound: Bound, default: int) -> int:
    spec = bound.spec
    return spec.timestamps_ms if isinstance(spec, Times) and isinstance(spec.timestamps_ms, int) else default


def _refuse_nothing(bound: Bound, *, word: str, number: int, remedy: str) -> None:
    """Refuse a bound that makes every read empty.

    Source of the rule: KafkaSourceProvider.validateBatchOptions (Spark's Kafka source).
    """
    spec = bound.spec
    if isinstance(spec, Times) or (isinstance(spec, str) and spec != word):
        return
    named = {queue: at for queue, at in spec.items() if is_named(queue)} if not isinstance(spec, str) else {}
    if spec == word or number in named.values():
        shown = f"{word!r}" if spec == word else f"{number} ({word})"
        raise ConfigError(f"option {bound.option!r} = {shown}: such a batch reads nothing; {remedy}")
