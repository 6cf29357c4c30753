"""Which options a batch read needs beside those of every read."""

from dataclasses import dataclass

from rmqtools.errors import ConfigError
from spark_connector.offsets import EARLIEST, LATEST, Bound, Times
from spark_connector.option import GivenOptions, Where
from spark_connector.options import option_values
from spark_connector.read_role import ReadOptions, bound_of, read_options
from spark_connector.roles import refuse_options


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """What a batch read needs to know."""

    read: ReadOptions
    start: Bound
    end: Bound


def batch_options(given: GivenOptions) -> BatchOptions:
    """The options of a batch read.

    Raises:
        ConfigError: required ones are missing, exclude each other, or are for something else.
    """
    refuse_options(given, Where.STREAM, doing="reading a batch")
    read = read_options(given)
    start = read.start or Bound("startingOffsets", "earliest")
    end = bound_of(option_values(given), "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
    assert end is not None  # it has a default
    _refuse_nothing(start, word="latest", number=LATEST, remedy="start at earliest or at offsets")
    _refuse_nothing(end, word="earliest", number=EARLIEST, remedy="end at latest or at offsets")
    return BatchOptions(read=read, start=start, end=end)


def _refuse_nothing(bound: Bound, *, word: str, number: int, remedy: str) -> None:
    """Refuse what would never read a message.

    Source of the rule: KafkaSourceProvider.validateBatchOptions (Spark's Kafka source).
    """
    spec = bound.spec
    if isinstance(spec, Times) or (isinstance(spec, str) and spec != word):
        return
    if spec == word or number in spec.values():  # type: ignore[union-attr]  # text is handled
        shown = f"{word!r}" if spec == word else f"{number} ({word})"
        raise ConfigError(f"option {bound.option!r} = {shown}: such a batch reads nothing; {remedy}")
