"""The names of the columns of a read row, and the parser of option ``columns``; pure."""

from typing import Final

from rmqtools.model.read_columns import COLUMN_BY_NAME, READ_COLUMNS
from rmqtools.unknown_name import name_hint
from spark_connector.options.kafka_names import KAFKA_COLUMNS
from spark_connector.options.option import parse_names

OFFSET_MSG_ID: Final = "offsetMsgId"
COLUMNS: Final = tuple(column.name for column in READ_COLUMNS if not column.is_extra)


def parse_columns(text: str) -> tuple[str, ...]:
    """Parse column names separated by commas.

    Raises:
        ValueError: an unknown name, or a name given twice.
    """
    names = parse_names(text)
    for name in names:
        if name not in COLUMN_BY_NAME:
            raise ValueError(
                f"there is no column {name!r} ({name_hint(name, COLUMN_BY_NAME, KAFKA_COLUMNS)})"
            )
    return names
