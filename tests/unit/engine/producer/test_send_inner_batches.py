"""Which batches are sent so that a broker may keep them as one message."""

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.testing import FakeCluster
from tests.support.batch_topics import BATCH_CONFIG, NORMAL_CONFIG

ASKED, SENT = RequestCode.GET_TOPIC_CONFIG, RequestCode.SEND_BATCH_MESSAGE


def properties_of_a_batch(answer, **settings) -> tuple[list[str], str, int]:
    """Ids of a sent batch, the properties of its request, and how often the queue type was asked for."""
    with FakeCluster() as cluster:
        cluster.create_topic("T", queues=1)
        cluster.fault(code=ASKED, times=None, answer=answer)
        with Producer(ProducerConfig(name_server=cluster.name_server, **settings)) as producer:
            results = producer.send_batch([Message("T", b"1"), Message("T", b"2")])
        (request,) = cluster.requests(code=SENT)
        return (
            [result.msg_id for result in results],
            request.ext_fields["i"] or "",
            len(cluster.requests(ASKED)),
        )


def test_a_batch_for_a_queue_that_holds_batches_has_the_id_of_its_first_message():
    ids, properties, _ = properties_of_a_batch(BATCH_CONFIG, inner_batches=True)

    assert f"UNIQ_KEY\x01{ids[0]}\x02" in properties


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(NORMAL_CONFIG, id="other-type"),
        pytest.param(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, id="old-broker"),
        pytest.param(ResponseCode.NO_PERMISSION, id="no-permission"),
    ],
)
def test_a_batch_for_another_queue_has_no_id(answer):
    _, properties, asked = properties_of_a_batch(answer, inner_batches=True)

    assert "UNIQ_KEY" not in properties
    assert asked == 1


def test_without_the_setting_no_broker_is_asked_and_no_batch_has_an_id():
    _, properties, asked = properties_of_a_batch(BATCH_CONFIG)

    assert ("UNIQ_KEY" in properties, asked) == (False, 0)
