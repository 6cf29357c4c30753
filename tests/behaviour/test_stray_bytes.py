"""A server that writes more than its answers: no send becomes unknown, and none is stored twice."""

import pytest

from rmqtools import Message
from rmqtools.model.codes import RequestCode
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster
from tests.support.send_ways import on_caller, on_loop, producing


@pytest.mark.parametrize("send", [on_caller, on_loop])
@pytest.mark.parametrize("left_over", [3, 8])
def test_bytes_behind_answers_make_no_send_unknown_and_store_nothing_twice(send, left_over):
    with FakeCluster() as cluster:
        cluster.create_topic("T", queues=1)
        with producing(cluster) as producer:
            offset = len(cluster.messages("T"))

            def answer(request):
                nonlocal offset
                body = b"%d" % offset
                cluster.store("T", body, queue=MessageQueue("T", "broker-a", 0))
                fields = {"msgId": "7F00", "queueId": "0", "queueOffset": body.decode()}
                offset += 1
                return response(0, 0, ext_fields=fields).encode(request.opaque) + bytes(left_over)

            cluster.fault(code=RequestCode.SEND_MESSAGE_V2, times=None, answer=answer)
            results = [send(producer, Message("T", b"x")).queue_offset for _ in range(30)]

        assert results == list(range(results[0], results[0] + 30))
        assert len(cluster.messages("T")) == offset == results[-1] + 1
