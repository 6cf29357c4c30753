"""Many messages through a proxy, which leaves requests unanswered when there are several on the wire."""

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.model.codes import RequestCode
from rmqtools.testing import FakeCluster
from tests.support.behind_proxy import show_as_proxy


def test_through_a_proxy_one_request_is_on_the_wire_at_a_time():
    with FakeCluster() as cluster:
        cluster.create_topic("T", queues=4)
        show_as_proxy(cluster)
        cluster.fault(code=RequestCode.SEND_MESSAGE_V2, answer=None)  # the first answer does not come
        config = ProducerConfig(
            name_server=cluster.name_server, group="many", send_timeout=0.4, max_batch_bytes=150
        )
        with Producer(config) as producer:
            producer.send_many([Message("T", b"%d" % number) for number in range(20)])

        sent = [request.body for request in cluster.requests(code=RequestCode.SEND_MESSAGE_V2)]
    assert len(sent) > 3
    assert sent[0] == sent[1]  # tried again before another one was sent


def test_connections_of_a_process_do_not_count_their_requests_alike():
    with FakeCluster() as cluster:
        for _ in range(3):
            with Producer(ProducerConfig(name_server=cluster.name_server, group="many")) as producer:
                producer.send(Message("T", b"x"))
        opaques = [request.opaque for request in cluster.requests(code=RequestCode.GET_ROUTEINFO_BY_TOPIC)]
    assert len(set(opaques)) == len(opaques)
