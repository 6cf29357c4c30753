"""The columns of a read message, and those a message can be written from."""

from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
PROPERTIES: Final = pa.map_(pa.string(), pa.string())

# One object for every batch: Spark compares types to the letter (no large_string, no dictionary, tz "UTC").
MESSAGE_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("brokerName", pa.string()),
        ("queueId", pa.int32()),
        ("queueOffset", pa.int64()),
        ("body", pa.binary()),
        ("tags", pa.string()),
        ("keys", pa.string()),
        ("properties", PROPERTIES),
        ("msgId", pa.string()),
        ("bornTimestamp", TIMESTAMP),
        ("storeTimestamp", TIMESTAMP),
        ("bornHost", pa.string()),
        ("reconsumeTimes", pa.int32()),
        ("sysFlag", pa.int32()),
        ("flag", pa.int32()),
    ]
)

# Columns of a batch to send; only the body is required. A string body is sent as UTF-8.
WRITE_COLUMNS: Final = {
    "body": (pa.binary(), pa.string()),
    "topic": (pa.string(),),
    "tags": (pa.string(),),
    "keys": (pa.string(),),
    "properties": (PROPERTIES,),
}
