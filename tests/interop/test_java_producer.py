"""The official Java client reads what our producer sent."""

import pytest

from rmqtools import Admin, Message, Producer, ProducerConfig
from tests.interop.messages import COMPRESSION_BITS, content, dumped_content, peer_messages, position
from tests.support.reading import await_readable

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("compression", [None, "ZLIB", "LZ4", "ZSTD"])
def test_java_reads_the_messages_that_our_producer_sent(docker_cluster, java_peer, new_topic, compression):
    topic = new_topic()
    config = ProducerConfig(
        name_server=docker_cluster.name_server,
        group="interop",
        compress_over_bytes=0,
        compression="none" if compression is None else compression.lower(),
    )
    wanted = {}
    results = []

    with Producer(config) as producer, Admin(config) as admin:
        for message in peer_messages(topic):
            mine = Message(topic, message.body, message.tags, message.keys, message.properties, message.flag)
            results.append(result := producer.send(mine))
            place = result.queue.broker_name, result.queue.queue_id, result.queue_offset
            wanted[place] = {
                **content(message),
                "msgId": result.msg_id,
                "sysFlag": COMPRESSION_BITS[compression],
            }

        await_readable(admin, results)

    dumped = java_peer.dump(docker_cluster.name_server, topic)
    assert {
        position(row): {**dumped_content(row), "msgId": row["msgId"], "sysFlag": row["sysFlag"]}
        for row in dumped
    } == wanted
