"""Batches that a broker keeps as one message, in a Spark read by tags."""

import pytest

from tests.support.patience import PATIENCE
from tests.support.raw_sends import create_batch_topic, send_batch

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def test_tags_choose_among_the_messages_of_stored_batches(admin, read_rows):
    queue = create_batch_topic(admin)
    for begin in (0, 25):
        send_batch(admin, queue, range(begin, begin + 25))
    admin.await_readable({queue: 50}, timeout=PATIENCE)

    rows = read_rows(topic=queue.topic, tags="t1")

    assert [int(row.body) for row in rows] == [row.queueOffset for row in rows] == [*range(1, 50, 3)]
