"""Which options a streaming read needs beside those of every read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rmqtools.errors import ConfigError
from spark_connector.admission import Limits
from spark_connector.offsets import Bound
from spark_connector.option import GivenOptions, Where
from spark_connector.options import option_values
from spark_connector.read_role import ReadOptions, read_options
from spark_connector.roles import refuse_options


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What a streaming read needs to know.

    Attributes:
        read: what every read needs to know.
        start: where a new query starts; one with a checkpoint goes on from there.
        limits: of a micro-batch.
        poll_interval: seconds between two questions to brokers while there is nothing to do.
        commit_to: the consumer group to be told how far the query is; None: none.
    """

    read: ReadOptions
    start: Bound
    limits: Limits
    poll_interval: float
    commit_to: str | None


def stream_options(given: GivenOptions) -> StreamOptions:
    """The options of a streaming read.

    Raises:
        ConfigError: required ones are missing, exclude each other, or are for something else.
    """
    refuse_options(given, Where.BATCH, doing="reading a stream")
    read, values = read_options(given), option_values(given)
    if read.allocation is not None and read.allocation.as_member is not None:
        raise ConfigError(
            "option 'asMember' is for batch reads only: what a member owns changes while a stream goes on"
        )
    if values["commitOffsetsToGroup"] and read.group is None:
        raise ConfigError("option 'commitOffsetsToGroup' needs option 'group': whom to tell")
    return StreamOptions(
        read=read,
        start=read.start or Bound("startingOffsets", "latest"),
        limits=_limits(values, {one.option.name for one in given}),
        poll_interval=values["pollInterval"],
        commit_to=read.group if values["commitOffsetsToGroup"] else None,
    )


def _limits(values: Mapping[str, Any], given: set[str]) -> Limits:
    least, most = values["minOffsetsPerTrigger"], values["maxOffsetsPerTrigger"]
    if least is None and "maxTriggerDelay" in given:
        raise ConfigError("option 'maxTriggerDelay' needs option 'minOffsetsPerTrigger': what to wait for")
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
