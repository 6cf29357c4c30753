"""Spark whose ``nameServer`` is a 5.x proxy."""

from collections import Counter

import pytest

from tests.spark.data import HARD_ROWS, WRITE_SCHEMA, message, messages_of


@pytest.mark.slow  # tests/integration/test_proxy.py sends and reads
def test_a_batch_is_written_and_read_through_a_proxy(proxy, make_topic, write, read):
    topic = make_topic(queues=2)

    write(HARD_ROWS, WRITE_SCHEMA, topic=topic, nameServer=proxy)

    rows = read(topic=topic, nameServer=proxy).collect()
    assert messages_of(rows) == Counter(message(*row) for row in HARD_ROWS)


@pytest.mark.slow  # a batch goes the same way
def test_a_stream_reads_through_a_proxy_what_was_written_and_goes_on(proxy, make_topic, write, stream):
    topic = make_topic(queues=2)
    query = stream(topic=topic, nameServer=proxy, startingOffsets="earliest")
    for start in (0, 50):
        rows = [(b"%d" % number,) for number in range(start, start + 50)]
        write(rows, "body binary", topic=topic, nameServer=proxy)
        query.run()

    assert sorted(int(bytes(row.body)) for row in query.rows()) == list(range(100))
