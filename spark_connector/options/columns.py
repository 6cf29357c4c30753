"""The names of the columns of a read row, and the parser of option ``columns``; pure."""

from typing import Final

from rmqtools.unknown_name import name_hint
from spark_connector.options.option import parse_names

PROPERTIES: Final = "properties"
OFFSET_MSG_ID: Final = "offsetMsgId"
COLUMNS: Final = (
    "topic",
    "brokerName",
    "queueId",
    "queueOffset",
    "body",
    "tags",
    "keys",
    PROPERTIES,
    "msgId",
    "bornTimestamp",
    "storeTimestamp",
    "bornHost",
    "reconsumeTimes",
    "sysFlag",
    "flag",
)


def parse_columns(text: str) -> tuple[str, ...]:
    """Parse column names separated by commas.

    Raises:
        ValueError: an unknown name, or a name given twice.
    """
    known = (*COLUMNS, OFFSET_MSG_ID)
    names = parse_names(text)
    for name in names:
        if name not in known:
            raise ValueError(f"there is no column {name!r} ({name_hint(name, known)})")
    return names
