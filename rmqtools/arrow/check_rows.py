"""Refuses rows that cannot be sent, before anything is sent.

Checks whole columns for possible errors. Suspicious rows are then checked one by one like every other message
(``policy.validate``), so the errors have the same texts.

Arrow and Spark's casts put any bytes into text columns. ``check_rows`` validates them; otherwise texts would
be stored that Java cannot read.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtools.arrow.encode_rows import all_bytes, byte_lengths, map_entries, user_properties
from rmqtools.arrow.rows import Rows
from rmqtools.arrow.spans import Mask
from rmqtools.arrow.texts import invalid_texts
from rmqtools.errors import MessageRejectedError
from rmqtools.model.message_const import PROPERTY_SHARDING_KEY, SET_BY_ROCKETMQ
from rmqtools.policy.validate import MAX_USER_PROPERTIES_BYTES, check_message

_TEXTS: Final = ("tags", "keys", "shardingKey")
_NAMES: Final = ("topic", "brokerName")
_SEPARATORS: Final = (b"\x01", b"\x02")


def check_rows(rows: Rows, max_message_bytes: int) -> pa.Array:
    """Refuse rows that cannot be stored, or not be read back unchanged.

    Returns:
        Their ``user_properties``, which only valid rows have.

    Raises:
        MessageRejectedError: names the row and, in it, the part, its value and the limit.
    """
    _check_each(rows, _suspects(rows, max_message_bytes), max_message_bytes)
    properties = user_properties(rows)
    _check_each(rows, byte_lengths(properties) > MAX_USER_PROPERTIES_BYTES, max_message_bytes)
    return properties


def _suspects(rows: Rows, max_message_bytes: int) -> Mask:
    body = rows.columns.column("body")
    length = byte_lengths(body)
    found: Mask = (length == 0) | (length > max_message_bytes)
    for column in (rows.column(name) for name in _TEXTS):
        if column is not None:
            found |= _contain(column, _SEPARATORS)
    if (tags := rows.column("tags")) is not None:
        found |= _contain(tags, [b"||"])
    if (properties := rows.column("properties")) is not None:
        found |= _odd_maps(properties)
    for name in ("delayLevel", "deliverTimestamp"):
        if (column := rows.column(name)) is not None:
            found |= np.asarray(column.is_valid())
    return found | _invalid(rows) | _odd_queues(rows) | _odd_topics(rows)


def _invalid(rows: Rows) -> Mask:
    """Rows with invalid UTF-8; maps are checked in ``_odd_maps``."""
    columns = [rows.column(name) for name in (*_TEXTS, *_NAMES)]
    found = np.zeros(len(rows), np.bool_)
    for column in (*columns, *rows.extra.values()):
        if column is not None:
            found |= invalid_texts(column)
    return found


def _odd_topics(rows: Rows) -> Mask:
    """Return the first row of every topic, so that each name is checked once, and rows without a topic."""
    found = np.zeros(len(rows), np.bool_)
    found[:1] = True
    if rows.topic is None:
        topics = rows.columns.column("topic")
        encoded = topics.dictionary_encode()
        codes = np.asarray(pc.fill_null(encoded.indices, -1))
        found[np.unique(codes, return_index=True)[1]] = True
        found |= codes < 0
    return found


def _odd_queues(rows: Rows) -> Mask:
    """Rows with only one of ``brokerName`` and ``queueId``."""
    found = np.zeros(len(rows), np.bool_)
    if "queueId" in rows.columns.schema.names:
        given = [np.asarray(rows.columns.column(name).is_valid()) for name in ("queueId", "brokerName")]
        found = given[0] != given[1]
    return found


def _odd_maps(column: pa.Array) -> Mask:
    """Rows with a property that has no name or value, a separator, invalid UTF-8, or a refused name."""
    names, values, bounds = map_entries(column)
    odd = (byte_lengths(names) == 0) | (byte_lengths(values) == 0)
    odd |= _contain(names, _SEPARATORS) | _contain(values, _SEPARATORS)
    odd |= invalid_texts(names) | invalid_texts(values)
    distinct = names.dictionary_encode()
    known = distinct.dictionary.to_pylist()
    refused = [
        number for number, name in enumerate(known) if name.decode("utf-8", "replace") in SET_BY_ROCKETMQ
    ]
    odd |= np.isin(np.asarray(pc.fill_null(distinct.indices, -1)), refused)
    found = np.zeros(len(column), np.bool_)
    found[np.repeat(np.arange(len(column)), np.diff(bounds))[odd]] = True
    return found


def _contain(column: pa.Array, patterns: Iterable[bytes]) -> Mask:
    """Rows that contain one of the patterns. Searches all values together first, usually without a match."""
    found = np.zeros(len(column), np.bool_)
    raw = column.cast(pa.binary())
    values = all_bytes(raw)
    for pattern in patterns:
        if pattern in values:
            found |= np.asarray(pc.fill_null(pc.match_substring(raw, pattern.decode()), False))
    return found


def find_bad_rows(rows: Rows, max_message_bytes: int) -> dict[int, str]:
    """Return the rows that :func:`check_rows` refuses, with the texts of their errors."""
    found = dict(_refusals(rows, _suspects(rows, max_message_bytes), max_message_bytes))
    if rows.topic is None:  # of each topic only the first row was checked
        topics = rows.columns.column("topic").cast(pa.binary())
        refused = topics.take(pa.array(list(found), pa.int64())).unique()
        found |= _refusals(rows, np.asarray(pc.is_in(topics, refused)), max_message_bytes)
    left = np.setdiff1d(np.arange(len(rows)), np.array(list(found), np.int64))
    rest = rows.take(pa.array(left))
    too_long = byte_lengths(user_properties(rest)) > MAX_USER_PROPERTIES_BYTES
    return found | {int(left[row]): text for row, text in _refusals(rest, too_long, max_message_bytes)}


def _check_each(rows: Rows, suspects: Mask, max_message_bytes: int) -> None:
    for _, text in _refusals(rows, suspects, max_message_bytes):
        raise MessageRejectedError(text)


def _refusals(rows: Rows, suspects: Mask, max_message_bytes: int) -> Iterator[tuple[int, str]]:
    """Yield the suspicious rows that are refused, and why."""
    for row in np.flatnonzero(suspects).tolist():
        try:
            _check_queue(rows, row)
            message = rows.message(row)
            check_message(message, max_message_bytes)
            if message.sharding_key and PROPERTY_SHARDING_KEY in message.properties:
                raise MessageRejectedError(f"property {PROPERTY_SHARDING_KEY!r} and shardingKey: give one")
        except MessageRejectedError as error:
            yield row, f"row {rows.number(row)}: {error}"


def _check_queue(rows: Rows, row: int) -> None:
    if "queueId" not in rows.columns.schema.names:
        return
    queue_id, broker_name = (rows.value(name, row) for name in ("queueId", "brokerName"))
    if (queue_id is None) != (broker_name is None):
        raise MessageRejectedError(
            f"queueId={queue_id} and brokerName={broker_name!r} name a queue together: fill both or neither"
        )
