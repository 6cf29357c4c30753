"""Settings of Java's consumers as texts, which vectors are written in.

Source of the rules: DefaultLitePullConsumer.setConsumeFromWhere, UtilAll.parseDate (Java client).
"""

from datetime import UTC, datetime, tzinfo

from rmqtools.errors import ConfigError
from rmqtools.model.group import ConsumeFromWhere

DEPRECATED_CONSUME_FROM = (
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
)
_TIMESTAMP_FORMAT = "%Y%m%d%H%M%S"
_TIMESTAMP_LENGTH = 14


def consume_from_where(name: str, *, accept_deprecated: bool = True) -> ConsumeFromWhere:
    """The rule of this name. Push consumers take three deprecated names, which mean the last offset.

    Raises:
        ConfigError: no such name, or a deprecated one where none is accepted (lite pull).
    """
    if accept_deprecated and name in DEPRECATED_CONSUME_FROM:
        return ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    if name not in ConsumeFromWhere.__members__:
        known = ", ".join(ConsumeFromWhere.__members__)
        raise ConfigError(f"consume_from_where={name!r}: want one of {known}")
    return ConsumeFromWhere(name)


def parse_consume_timestamp(text: str, zone: tzinfo | None = None) -> int:
    """``yyyyMMddHHmmss`` as milliseconds since 1970, in ``zone`` (None: this machine's).

    A time that the clocks skip is read as if they had not been put forward, one they show twice is the
    second: both are Java's.

    Raises:
        ConfigError: not 14 digits, or no such day or time. Java rolls the 32nd of a month over instead, and
            starts nowhere (a NullPointerException) with other text.
    """
    local = _parse_time(text)
    instants = [_instant(local.replace(fold=fold), zone) for fold in (0, 1)]
    return int(max(instants).timestamp()) * 1000


def _parse_time(text: str) -> datetime:
    try:
        if len(text) != _TIMESTAMP_LENGTH or not (text.isascii() and text.isdigit()):
            raise ValueError(text)
        return datetime.strptime(text, _TIMESTAMP_FORMAT)  # the zone is added by the caller
    except ValueError as error:
        raise ConfigError(f"consume_timestamp={text!r}: want yyyyMMddHHmmss, e.g. 20231114221320") from error


def _instant(local: datetime, zone: tzinfo | None) -> datetime:
    return (local if zone is None else local.replace(tzinfo=zone)).astimezone(UTC)
