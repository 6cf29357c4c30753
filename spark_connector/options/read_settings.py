"""The settings that batch and streaming reads share, made from the options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rmqtools import ClientConfig
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError
from rmqtools.model.block import CorruptBody
from rmqtools.model.read_columns import PROPERTIES
from spark_connector.options.allocation import Allocation, allocation_of
from spark_connector.options.catalog_table import refuse_no_options
from spark_connector.options.client_settings import client_config, refuse_options
from spark_connector.options.columns import COLUMNS, OFFSET_MSG_ID
from spark_connector.options.offsets import Bound, GivenTimes, Times
from spark_connector.options.option import GivenOptions, Where
from spark_connector.options.option_table import option_values
from spark_connector.options.selection import Selection, Topics

_WHAT: Final = ("topic", "topics", "topicPattern", "assign")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The settings of every read.

    Attributes:
        client: settings of the reading clients.
        selection: the queues to read.
        tags: only messages with one of these tags; empty: all.
        sql: only messages that match this condition.
        start: start of the read; None: not given.
        group: consumer group whose offsets or members are used.
        group_offset_fallback: ``earliest``, ``latest`` or ``error``, for queues without an offset of the
            group.
        when_none_after: ``latest`` or ``error``, for queues without a message from the starting time on.
        fail_on_data_loss: whether lost messages are an error.
        corrupt_body: ``fail``, ``raw`` or ``null``, for messages whose body cannot be decoded.
        planning_timeout: seconds that the driver waits for brokers that do not answer.
        min_partitions: see ``plan_tasks``.
        max_records_per_partition: see ``plan_tasks``.
        allocation: sharing of queues among readers; None: none.
        columns: names of the columns to read, in order.
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
    corrupt_body: CorruptBody
    planning_timeout: float
    min_partitions: int | None
    max_records_per_partition: int | None
    allocation: Allocation | None
    columns: tuple[str, ...]


def read_options(given: GivenOptions) -> ReadOptions:
    """Make the settings that all reads share; ``batch_settings`` and ``stream_settings`` add their own.

    Raises:
        ConfigError: options are missing, conflict, or belong to writes.
    """
    refuse_options(given, Where.WRITE, doing="reading")
    refuse_no_options(given)
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
        corrupt_body=values["corruptBody"],
        planning_timeout=values["planningTimeout"],
        min_partitions=values["minPartitions"],
        max_records_per_partition=values["maxRecordsPerPartition"],
        allocation=allocation_of(given, values),
        columns=_columns(given, values),
    )


def bound_of(values: Mapping[str, Any], *options: str, not_after: int | None = None) -> Bound | None:
    """Return the bound set by the first of these options that has a value.

    Args:
        values: values of all options.
        options: their names, by precedence.
        not_after: refuse times after this one.

    Raises:
        ConfigError: a time in the future, or without a time zone.
    """
    option = next((option for option in options if values[option] is not None), None)
    if option is None:
        return None
    if not isinstance(values[option], GivenTimes):
        return Bound(option, values[option])
    try:
        times = values[option].in_zone(values["timeZone"])
    except ValueError as error:
        raise ConfigError(f"option {option!r}: {error}") from None
    if not_after is not None:
        _check_past(option, times, not_after)
    return Bound(option, times)


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


def _columns(given: GivenOptions, values: Mapping[str, Any]) -> tuple[str, ...]:
    if values["columns"] is None:
        left_out = set() if values["includeProperties"] else {PROPERTIES}
        added = (OFFSET_MSG_ID,) if values["offsetMsgId"] else ()
        return (*(name for name in COLUMNS if name not in left_out), *added)
    for one in given:
        if one.option.name in ("includeProperties", "offsetMsgId"):
            raise ConfigError(f"options 'columns' and {one.name!r} exclude each other: name it in 'columns'")
    columns: tuple[str, ...] = values["columns"]
    return columns


def _check_pairs(values: Mapping[str, Any]) -> None:
    if values["tags"] and values["sql"]:
        raise ConfigError(
            "options 'tags' and 'sql' exclude each other: add TAGS to the condition, or drop one"
        )
    if values["group"] is None:
        for option in ("startingOffsets", "endingOffsets"):
            if values[option] == "group":
                raise ConfigError(
                    f"option {option!r} = 'group' needs option 'group': give the group whose offsets to take"
                )


def _now() -> int:
    return SYSTEM_CLOCK.now_ms()
