"""The settings of batch reads, made from the options."""

from dataclasses import dataclass

from rmqtools.errors import ConfigError
from spark_connector.options.client_settings import refuse_options
from spark_connector.options.offsets import EARLIEST, LATEST, Bound, Times
from spark_connector.options.option import GivenOptions, Where
from spark_connector.options.queue_json import is_named
from spark_connector.options.read_settings import ReadOptions, bound_of, read_options
from spark_connector.options.table import option_values


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """The settings of a batch read."""

    read: ReadOptions
    start: Bound
    end: Bound


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
    return BatchOptions(read=read, start=start, end=end)


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
