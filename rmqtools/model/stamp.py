"""Names of the properties by which copies of a row that Spark has written are told from other rows."""

SPARK_STAMP = "SPARK_STAMP"
"""Property of messages written by ``spark_connector`` with option ``stamp``: the row's place in the write."""
SPARK_HASH = "SPARK_HASH"
"""Property beside ``SPARK_STAMP``: a hash over the row, or over its id."""
