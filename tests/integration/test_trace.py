"""Message trace on a real cluster."""

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.model.trace import PubTrace, TraceMessageType
from tests.support.cluster_scene import wait_until
from tests.support.reading import read_all
from tests.support.trace_records import parse_pubs

pytestmark = pytest.mark.broker


def test_each_message_is_told_of_in_the_trace_topic_under_its_id(local_cluster, client, admin, make_topic):
    topic = make_topic()
    config = ProducerConfig(name_server=local_cluster.name_server, group="traced", enable_trace=True)
    with Producer(config) as producer:
        plain = producer.send(Message(topic, b"plain", tags="t", keys=["a", "b"]))
        delayed = producer.send(Message(topic, b"later", delay_level=1))
        batch = producer.send_batch([Message(topic, b"%d" % n) for n in range(3)])
    sent = {result.msg_id: result for result in (plain, delayed, *batch)}

    def traced() -> dict[str, PubTrace]:
        messages = read_all(client, admin, "RMQ_SYS_TRACE_TOPIC")
        records = {
            record.msg_id: record for message in messages for record in parse_pubs(message.body.decode())
        }
        keys = {key for message in messages for key in (message.keys or "").split()}
        return {msg_id: records[msg_id] for msg_id in sent.keys() & records.keys() & keys}

    wait_until(lambda: traced().keys() == sent.keys())
    records = traced()

    first = records[plain.msg_id]
    assert (first.topic, first.group, first.tags, first.keys) == (topic, "traced", "t", "a b")
    assert first.store_host == local_cluster.broker_addrs[plain.queue.broker_name]
    assert records[delayed.msg_id].message_type is TraceMessageType.DELAY
    assert all(record.success and record.region_id == "DefaultRegion" for record in records.values())
    assert {m: r.offset_msg_id for m, r in records.items()} == {m: s.offset_msg_id for m, s in sent.items()}
