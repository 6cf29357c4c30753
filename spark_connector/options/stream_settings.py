"""The settings of streaming reads, made from the options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rmqtools.errors import ConfigError
from spark_connector.options.batch_limits import Limits
from spark_connector.options.client_settings import refuse_options
from spark_connector.options.offsets import Bound
from spark_connector.options.option import GivenOptions, Where
from spark_connector.options.option_table import option_values
from spark_connector.options.read_settings import ReadOptions, bound_of, read_options

_ENDS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")  # by precedence


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The settings of a streaming read.

    Attributes:
        read: the settings that all reads share.
        start: start of a new query; a query with a checkpoint continues from it.
        end: end of the query; None: endless.
        must_exist: whether topics must exist when a new query starts.
        limits: limits of a micro-batch.
        poll_interval: seconds between requests to brokers while there are no new messages.
        commit_to: consumer group whose offsets follow the query; None: none.
    """

    read: ReadOptions
    start: Bound
    end: Bound | None
    must_exist: bool
    limits: Limits
    poll_interval: float
    commit_to: str | None


def stream_options(given: GivenOptions) -> StreamOptions:
    """Make the settings of a streaming read.

    Raises:
        ConfigError: options are missing, conflict, or belong to other operations.
    """
    refuse_options(given, Where.BATCH, doing="reading a stream")
    read, values = read_options(given), option_values(given)
    names = {one.option.name for one in given}
    if read.allocation is not None and read.allocation.as_member is not None:
        raise ConfigError(
            "option 'asMember' is for batch reads only: a member's queues change while a stream runs"
        )
    if values["commitOffsetsToGroup"] and read.group is None:
        raise ConfigError(
            "option 'commitOffsetsToGroup' needs option 'group': give the group that gets the offsets"
        )
    return StreamOptions(
        read=read,
        start=read.start or Bound("startingOffsets", "latest"),
        end=_end(values) if names.intersection(_ENDS) else None,
        must_exist=values["mustExist"],
        limits=_limits(values, names),
        poll_interval=values["pollInterval"],
        commit_to=read.group if values["commitOffsetsToGroup"] else None,
    )


def _end(values: Mapping[str, Any]) -> Bound | None:
    end = bound_of(values, *_ENDS)
    if end is not None and end.spec == "earliest":
        raise ConfigError(
            f"option {end.option!r} = 'earliest': such a stream reads nothing; end at latest or at offsets"
        )
    return end


def _limits(values: Mapping[str, Any], given: set[str]) -> Limits:
    least, most = values["minOffsetsPerTrigger"], values["maxOffsetsPerTrigger"]
    if least is None and "maxTriggerDelay" in given:
        raise ConfigError("option 'maxTriggerDelay' needs option 'minOffsetsPerTrigger': set it too")
    if least is not None and most is not None and least > most:
        raise ConfigError(
            f"option 'minOffsetsPerTrigger' = {least} is more than 'maxOffsetsPerTrigger' = {most}: "
            "give a smaller one"
        )
    return Limits(
        max_offsets=most,
        max_bytes=values["maxBytesPerTrigger"],
        min_offsets=least,
        max_delay=values["maxTriggerDelay"],
    )
