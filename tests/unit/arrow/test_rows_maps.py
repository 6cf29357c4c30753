"""Properties come in maps of several types that mean the same."""

import pyarrow as pa

from rmqtools.arrow.rows import batch_to_messages


def test_a_map_whose_values_are_never_null_is_a_map_of_properties():
    never_null = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))
    columns = {"body": pa.array([b"x"]), "properties": pa.array([[("src", "bench")]], never_null)}

    (message,) = batch_to_messages(pa.record_batch(columns), topic="T")

    assert message.properties == {"src": "bench"}
