"""Which options reads need, batches and streams alike, and which exclude each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rmqtools import ClientConfig
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError
from spark_connector.allocation import Allocation, allocation_of
from spark_connector.offsets import Bound, Times
from spark_connector.option import GivenOptions, Where
from spark_connector.options import option_values
from spark_connector.roles import client_config, refuse_options
from spark_connector.selection import Selection, Topics

_WHAT: Final = ("topic", "topics", "topicPattern", "assign")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What every read needs to know.

    Attributes:
        client: settings of the clients that read.
        selection: which queues.
        tags: only messages with one of these; none: all.
        sql: only messages that fulfil this condition.
        start: where to start; None: nothing was said.
        group: a consumer group to look at.
        group_offset_fallback: ``earliest``, ``latest`` or ``error``: for queues the group has no offset for.
        when_none_after: ``latest`` or ``error``: for queues without a message from the starting time on.
        fail_on_data_loss: whether messages that are gone are an error.
        min_partitions: see ``plan_tasks``.
        max_records_per_partition: see ``plan_tasks``.
        allocation: how queues are shared among readers; None: they are not.
        include_properties: whether rows have them.
        offset_msg_id: whether rows have it.
    """

    client: ClientConfig
    selection: Selection
    tags: tuple[str, ...]
    sql: str | None
    start: Bound | None
    group: str | None
    group_offset_fallback: str
    when_none_after: str
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    allocation: Allocation | None
    include_properties: bool
    offset_msg_id: bool


def read_options(given: GivenOptions) -> ReadOptions:
    """The options of a read; those of its kind alone are looked at by ``batch_role`` and ``stream_role``.

    Raises:
        ConfigError: required ones are missing, exclude each other, or are for writes.
    """
    refuse_options(given, Where.WRITE, doing="reading")
    values = option_values(given)
    _check_pairs(values)
    return ReadOptions(
        client=client_config(ClientConfig, given),
        selection=_selection(values),
        tags=values["tags"] or (),
        sql=values["sql"],
        start=bound_of(
            values, "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets", not_after=_now()
        ),
        group=values["group"],
        group_offset_fallback=values["groupOffsetFallback"],
        when_none_after=values["startingOffsetsByTimestampStrategy"],
        fail_on_data_loss=values["failOnDataLoss"],
        min_partitions=values["minPartitions"],
        max_records_per_partition=values["maxRecordsPerPartition"],
        allocation=allocation_of(given, values),
        include_properties=values["includeProperties"],
        offset_msg_id=values["offsetMsgId"],
    )


def bound_of(values: Mapping[str, Any], *options: str, not_after: int | None = None) -> Bound | None:
    """The first of these options that has a value.

    Args:
        values: of all options.
        options: their names; those in front go before the others.
        not_after: refuse times after this one.

    Raises:
        ConfigError: a time that is still to come.
    """
    option = next((option for option in options if values[option] is not None), None)
    if option is None:
        return None
    bound = Bound(option, values[option])
    if isinstance(bound.spec, Times) and not_after is not None:
        _check_past(option, bound.spec, not_after)
    return bound


def _check_past(option: str, times: Times, now: int) -> None:
    given = times.timestamps_ms
    latest = given if isinstance(given, int) else max(given.values())
    if latest > now:
        raise ConfigError(
            f"option {option!r}: {latest} is in the future, now is {now}: give milliseconds since 1970, "
            "of a time that has been"
        )


def _selection(values: Mapping[str, Any]) -> Selection:
    names = [name for name in _WHAT if values[name] is not None]
    if not names:
        raise ConfigError(
            "what to read: neither option 'topic' nor 'topics', 'topicPattern' or 'assign' is given; "
            "give one, e.g. option('topic', 'Orders')"
        )
    if len(names) > 1:
        first, second, *_ = (f"{name!r}" for name in names)
        raise ConfigError(f"what to read: both {first} and {second} are given; give one")
    value: str | tuple[str, ...] | Selection = values[names[0]]
    if isinstance(value, str):
        return Topics((value,))
    return Topics(value) if isinstance(value, tuple) else value


def _check_pairs(values: Mapping[str, Any]) -> None:
    if values["tags"] and values["sql"]:
        raise ConfigError(
            "options 'tags' and 'sql' exclude each other: add TAGS to the condition, or drop one"
        )
    if values["group"] is None:
        for option in ("startingOffsets", "endingOffsets"):
            if values[option] == "group":
                raise ConfigError(f"option {option!r} = 'group' needs option 'group': whose offsets to take")


def _now() -> int:
    return SYSTEM_CLOCK.now_ms()
