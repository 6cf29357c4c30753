"""Range reads with a filter: far leaps, no predictions, and a broker that is asked first."""

import json

import pytest

from rmqtools.engine.reading.range_filter import is_wanted, read_filter
from rmqtools.errors import BrokerError, ConfigError, DataLossError
from rmqtools.policy.subscription import build_subscription
from rmqtools.protocol.messages.inner_batch import INNER_BATCH
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.testing import RequestCode, ResponseCode, stored_message
from tests.support.batch_topics import BATCH_CONFIG
from tests.unit.engine.reading.scripted_queue import Answer, Broker, flat, read


class Filtering(Broker):
    """Scans ``scanned`` offsets per pull; ``holes`` are the offsets that the filter removes."""

    scanned = 100

    def __init__(self, low: int, high: int, matching: range):
        super().__init__(low, high, lambda offset: self.scanned, frozenset(range(low, high)) - set(matching))
        self.expressions: set[tuple[str | None, str | None]] = set()

    def __call__(self, request: RemotingCommand) -> Answer:
        if request.code == RequestCode.CHECK_CLIENT_CONFIG:
            bad = json.loads(request.body)["subscriptionData"]["subString"].endswith("<")
            return response(ResponseCode.SUBSCRIPTION_PARSE_FAILED if bad else 0, 0, remark="unexpected end")
        if request.code == RequestCode.PULL_MESSAGE:
            fields = request.ext_fields
            self.expressions.add((fields["subscription"], fields["expressionType"]))
            request.ext_fields = {**fields, "maxMsgNums": str(self.scanned)}
        return super().__call__(request)


@pytest.mark.parametrize(
    ("reading", "expression"),
    [
        pytest.param({"tags": {"b", "a"}}, ("a||b", "TAG"), id="tags"),
        pytest.param({"sql": "a > 5"}, ("a > 5", "SQL92"), id="sql"),
    ],
)
def test_a_filter_goes_to_the_broker_and_its_gaps_are_no_loss(reading, expression):
    broker = Filtering(0, 1000, range(5, 1000, 150))

    assert flat(read(broker, 0, 1000, how=reading)) == [*range(5, 1000, 150)]
    assert broker.expressions == {expression}


def test_with_a_filter_no_offset_is_asked_for_twice():
    broker = Filtering(0, 1000, range(0, 1000, 7))

    read(broker, 0, 1000, how={"tags": ["a"]})

    assert broker.pulls == [*range(0, 1000, 100)]


def test_a_filter_that_nothing_matches_gives_nothing():
    assert read(Filtering(0, 1000, range(0)), 0, 1000, how={"sql": "a > 5"}) == []


def test_a_condition_that_the_broker_cannot_read_is_refused_before_anything_is_pulled():
    """A broker answers such pulls with every message."""
    broker = Filtering(0, 1000, range(1000))

    with pytest.raises(BrokerError, match="unexpected end"):
        read(broker, 0, 1000, how={"sql": "a <"})
    assert broker.pulls == []


@pytest.mark.parametrize(
    ("end", "found"),
    [
        pytest.param(45, [20, 30, 40], id="behind-a-message"),
        pytest.param(40, [20, 30], id="at-a-message"),
        pytest.param(41, [20, 30, 40], id="right-behind-a-message"),
    ],
)
def test_a_filter_does_not_reach_over_the_end_of_the_range(end, found):
    assert flat(read(Filtering(0, 1000, range(0, 1000, 10)), 15, end, how={"tags": ["a"]})) == found


def test_what_has_expired_is_a_loss_with_a_filter_too():
    with pytest.raises(DataLossError, match=r"offsets \[0, 96\)"):
        read(Filtering(96, 1000, range(100, 200)), 0, 1000, how={"tags": ["a"]})


class KeepingBatches(Filtering):
    """It says that its queues hold stored batches, and sends everything whatever filter it is asked with."""

    scanned = 32

    def __call__(self, request: RemotingCommand) -> Answer:
        return BATCH_CONFIG if request.code == RequestCode.GET_TOPIC_CONFIG else super().__call__(request)


def test_of_a_queue_of_stored_batches_all_is_read_whatever_the_tags_and_offsets_are_predicted():
    broker = KeepingBatches(0, 1000, range(1000))

    assert flat(read(broker, 0, 1000, how={"tags": ["a"]})) == [*range(1000)]
    assert broker.expressions == {("*", "TAG")}
    assert broker.pulls[:4] == [0, 32, 64, 96]


def test_a_condition_on_a_queue_of_stored_batches_is_refused_before_anything_is_pulled():
    broker = KeepingBatches(0, 1000, range(1000))

    with pytest.raises(ConfigError, match="'T' has the queue type BatchCQ"):
        read(broker, 0, 1000, how={"sql": "a > 5"})
    assert broker.pulls == []


@pytest.mark.parametrize(
    ("flag", "properties", "wanted"),
    [
        pytest.param(0, {"TAGS": "a"}, True, id="its-tag"),
        pytest.param(0, {"TAGS": "b"}, False, id="another-tag"),
        pytest.param(INNER_BATCH, {"TAGS": "b"}, False, id="of-a-batch"),
        pytest.param(INNER_BATCH, {"INNER_NUM": "3"}, True, id="a-batch-that-was-not-unwrapped"),
    ],
)
def test_tags_are_compared_by_text_and_a_batch_whose_tags_are_unknown_is_wanted(flag, properties, wanted):
    message = stored_message("T", sys_flag=flag, properties=properties)

    assert is_wanted(message, build_subscription("T", "a")) is wanted


def test_tags_and_a_condition_together_are_refused():
    with pytest.raises(ConfigError, match=r"both tags=.* and sql="):
        read_filter("T", tags=["a"], sql="a > 5")
