"""A topic that is given up and subscribed again, on a scripted broker set."""

from tests.unit.engine.consumer.pull_scene import TOPIC, BrokerSet, polled, reading
from tests.unit.engine.consumer.push_scene import until

QUEUES = 8


async def test_a_topic_subscribed_again_goes_on_where_it_was_consumed_to():
    brokers = BrokerSet(16, queues=QUEUES)
    async with reading(brokers, auto_commit_interval=60.0) as consumer:
        await until(lambda: len(consumer.queues) == QUEUES)
        await polled(consumer, 16 * QUEUES)
        assert await consumer.poll(0) == []
        consumer.unsubscribe(TOPIC)
        consumer.subscribe(TOPIC)
        await until(lambda: consumer.queues == [])
        await until(lambda: len(consumer.queues) == QUEUES)
        assert await consumer.poll(0.2, 1000) == []
        assert set(brokers.committed.values()) == {16}
