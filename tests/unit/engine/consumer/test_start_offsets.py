"""A negative offset in a group's store is no offset: whoever reads it starts at ``consume_from``."""

import pytest

from rmqtools import aio
from rmqtools.config import ClientConfig
from rmqtools.engine.group.local_offset_store import LocalFileOffsetStore
from rmqtools.model.group import ConsumeFromWhere, MessageModel
from tests.unit.engine.consumer.pull_scene import Q0, Q1, BrokerSet, polled, reading
from tests.unit.engine.consumer.push_scene import until

LAST, FIRST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
JAVA_FILE = '{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:-1}}'


def ignored(caplog) -> list[tuple[object, ...]]:
    events = [record for record in caplog.records if "stored_offset_ignored" in record.getMessage()]
    return [(event.queue, event.stored, event.chosen) for event in events]


@pytest.mark.parametrize(("consume_from", "begins"), [(FIRST, 0), (LAST, 100)])
async def test_a_broadcasting_member_starts_at_consume_from_where_javas_file_has_none(
    consume_from, begins, tmp_path, caplog
):
    path = tmp_path / "offsets.json"
    path.write_text(JAVA_FILE)

    brokers = BrokerSet(high=100)
    given = {"message_model": MessageModel.BROADCASTING, "offset_store_path": str(path)}
    async with reading(brokers, consume_from=consume_from, **given) as consumer:
        await until(consumer.assignment)
        brokers.grow(0, range(100, 105))
        assert await consumer.committed(Q0) == begins
        assert (await polled(consumer, 2))[0] == begins
        await consumer.commit()
    assert ignored(caplog) == [(str(Q0), -1, begins)]
    assert LocalFileOffsetStore(path).noted() == {Q0: begins + 2}


@pytest.mark.parametrize("stored", [-1, -7])
async def test_a_member_starts_at_consume_from_where_its_broker_answers_a_negative_offset(stored, caplog):
    brokers = BrokerSet(high=5, queues=2)
    for queue, offset in ((Q0, stored), (Q1, 3)):
        brokers.cluster.commit("g", queue, offset)
    async with reading(brokers) as consumer:
        assert await consumer.committed(Q0) == 0
        assert sorted(await polled(consumer, 7)) == [0, 1, 2, 3, 3, 4, 4]
    assert ignored(caplog) == [(str(Q0), stored, 0)]


async def test_an_administrator_sees_no_offset_and_stats_without_one():
    brokers = BrokerSet(high=5)
    brokers.cluster.commit("g", Q0, -1)
    async with brokers.serving(), aio.Admin(ClientConfig(name_server=brokers.name_server)) as admin:
        assert await admin.fetch_consumer_offsets("g", "T") == {Q0: None}
        stats = await admin.fetch_consume_stats("g", "T")
        assert [offsets.consumer_offset for offsets in stats.offset_table.values()] == [0]


async def test_a_queue_without_any_stored_offset_is_no_reason_for_a_warning(caplog):
    async with reading(BrokerSet(high=5, low=2)) as consumer:
        assert await polled(consumer, 1) == [2]
    assert ignored(caplog) == []
