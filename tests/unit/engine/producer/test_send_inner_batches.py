"""Which batches are sent so that a broker may keep them as one message."""

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.protocol.messages.properties import parse_properties
from rmqtools.testing import FakeCluster, RequestCode
from tests.support.batch_topics import BATCH_CONFIG, NORMAL_CONFIG

ASKED, SENT = RequestCode.GET_TOPIC_CONFIG, RequestCode.SEND_BATCH_MESSAGE


@pytest.mark.parametrize(
    ("answer", "settings", "has_id", "asked"),
    [
        pytest.param(BATCH_CONFIG, {"inner_batches": True}, True, 1, id="holds-batches"),
        pytest.param(NORMAL_CONFIG, {"inner_batches": True}, False, 1, id="other-type"),
        pytest.param(BATCH_CONFIG, {}, False, 0, id="without-the-setting"),
    ],
)
def test_a_batch_has_the_id_of_its_first_message_only_if_its_queue_holds_batches(
    answer, settings, has_id, asked
):
    with FakeCluster() as cluster:
        cluster.create_topic("T", queues=1)
        cluster.fault(code=ASKED, times=None, answer=answer)
        with Producer(ProducerConfig(name_server=cluster.name_server, **settings)) as producer:
            first, _ = producer.send_batch([Message("T", b"1"), Message("T", b"2")])
        (request,) = cluster.requests(code=SENT)

    found = parse_properties(request.ext_fields["i"] or "").get("UNIQ_KEY")
    assert (found == first.msg_id, found is None) == (has_id, not has_id)
    assert len(cluster.requests(ASKED)) == asked
