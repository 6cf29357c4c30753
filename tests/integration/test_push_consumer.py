"""Push consumers on real brokers: conditions, which the fake cluster does not evaluate."""

import pytest

from rmqtools.errors import BrokerError
from tests.support.listening import Heard

pytestmark = pytest.mark.broker


def test_a_condition_on_properties_chooses(consume, send, make_topic):
    topic, heard = make_topic(), Heard()
    for number in range(6):
        send(topic, [b"%d" % number], properties={"n": str(number)})
    consume(topic, heard, sql="n > 2 AND n <> 4")
    heard.wait(2)

    assert sorted(heard.bodies) == [b"3", b"5"]


def test_a_condition_that_a_broker_refuses_fails_the_start(consume, make_topic):
    with pytest.raises(BrokerError, match="parse"):
        consume(make_topic(), Heard(), sql="n >>> 2")
