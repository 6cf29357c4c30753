"""Pull consumers on a real cluster: conditions, which the fake cluster does not evaluate."""

import pytest

from rmqtools import ConsumeFromWhere, Message, MessageQueue, PullConsumer, PullConsumerConfig
from rmqtools.model.message import MessageExt
from tests.support.cluster_scene import wait_until
from tests.support.listening import new_group
from tests.support.reading import await_readable

pytestmark = pytest.mark.broker


def test_conditions_on_properties_are_kept_by_the_broker(local_cluster, make_topic, producer, admin) -> None:
    queue = MessageQueue(make_topic(queues=1), "broker-a", 0)
    messages = [Message(queue.topic, b"%d" % n, properties={"n": str(n)}) for n in range(20)]
    await_readable(admin, [producer.send(message, queue=queue) for message in messages])
    config = PullConsumerConfig(
        name_server=local_cluster.name_server,
        group=new_group(),
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    found: list[MessageExt] = []

    with PullConsumer(config) as consumer:
        consumer.subscribe(queue.topic, sql="n BETWEEN 5 AND 8")
        wait_until(lambda: found.extend(consumer.poll(0.1)) or len(found) >= 4)
        wait_until(lambda: consumer.position(queue) == 20)
        found += consumer.poll(0)

    assert [message.queue_offset for message in found] == [5, 6, 7, 8]
