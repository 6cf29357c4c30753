"""The push consumer as a whole."""

from rmqtools import aio
from rmqtools.testing import FakeCluster
from tests.unit.engine.consumer.pull_scene import Q0, TOPIC, push_config
from tests.unit.engine.consumer.push_scene import until


async def test_what_is_fetched_of_a_topic_that_is_unsubscribed_stays_with_the_group():
    heard: list[int] = []

    async def listen(messages, _) -> None:
        heard.append(messages[0].queue_offset)
        consumer.unsubscribe(TOPIC)
        await until(lambda: Q0 not in consumer.queues)

    async with FakeCluster() as cluster:
        cluster.create_topic(TOPIC, queues=1)
        cluster.store(TOPIC, *[b"body"] * 5)
        consumer = aio.PushConsumer(push_config(cluster, consume_threads=1))
        consumer.subscribe(TOPIC, listen)
        async with consumer:
            await until(lambda: heard and Q0 not in consumer.queues)

        assert heard == [0]
        assert not cluster.committed("g", Q0)
