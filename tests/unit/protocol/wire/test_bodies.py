import gc
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.errors import ProtocolError
from rmqtools.model.group import QueryAssignmentRequestBody
from rmqtools.model.route import BrokerData, ClusterInfo, QueueData, TopicQueueMapping, TopicRouteData
from rmqtools.protocol.wire import bodies
from rmqtools.protocol.wire.bodies import format_body

ROUTE = TopicRouteData(
    queue_datas=(QueueData("broker-a", 4, 5, 6),),
    broker_datas=(BrokerData("broker-a", {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}, "C"),),
    filter_server_table={"x": ("y",)},
    topic_queue_mapping_by_broker={
        "broker-a": TopicQueueMapping("T", "broker-a", "__global__", 2, 3, curr_id_map={0: 1})
    },
)
PARSERS = [
    getattr(bodies, name) for name in bodies.__all__ if name.startswith("parse_") and name != "parse_body"
]


def test_a_route_is_read_whether_keys_are_quoted_or_not():
    loose = format_body(ROUTE)
    strict = loose.replace(b"{0:", b'{"0":').replace(b",1:", b',"1":')

    assert b"{0:" in loose
    assert json.loads(strict)
    assert bodies.parse_topic_route(loose) == bodies.parse_topic_route(strict) == ROUTE


def test_what_a_4_9_server_leaves_out_has_its_default():
    queue_data = b'{"brokerName":"b","readQueueNums":1,"writeQueueNums":2,"perm":6}'
    data = b'{"queueDatas":[' + queue_data + b'],"brokerDatas":null}'

    assert bodies.parse_topic_route(data) == TopicRouteData(queue_datas=(QueueData("b", 1, 2, 6),))


def test_no_order_conf_and_an_empty_one_differ():
    assert bodies.parse_topic_route(b"{}").order_topic_conf is None
    assert bodies.parse_topic_route(b'{"orderTopicConf":""}').order_topic_conf == ""


def test_fields_of_a_newer_server_are_passed_over():
    assert bodies.parse_cluster_info(b'{"fromTheFuture":[1],"clusterAddrTable":{"C":["b"]}}') == ClusterInfo(
        cluster_addr_table={"C": ("b",)}
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[]", "TopicRouteData.*object"),
        (b'{"queueDatas":{}}', "queueDatas.*array"),
        (b'{"queueDatas":[1]}', "QueueData.*object"),
        (b'{"queueDatas":[{}]}', "QueueData.brokerName is missing"),
        (b'{"brokerDatas":[{"brokerName":"b","brokerAddrs":{"x":"a"}}]}', "brokerAddrs.*'x'"),
        (b'{"brokerDatas":[{"brokerName":"b","brokerAddrs":{"0":1}}]}', "brokerAddrs.*str"),
        (b'{"brokerDatas":[{"brokerName":7,"brokerAddrs":{}}]}', "brokerName.*str"),
        (b'{"filterServerTable":7}', "filterServerTable.*object"),
    ],
)
def test_what_does_not_fit_is_named(data, words):
    with pytest.raises(ProtocolError, match=words):
        bodies.parse_topic_route(data)


def test_a_key_that_is_no_queue_is_refused():
    with pytest.raises(ProtocolError, match="MessageQueue"):
        bodies.parse_topic_stats(b'{"offsetTable":{7:{"minOffset":1,"maxOffset":9}}}')


def test_an_assignment_may_be_unknown_empty_or_without_queue():
    assert bodies.parse_query_assignment(b"{}").message_queue_assignments is None
    assert bodies.parse_query_assignment(b'{"messageQueueAssignments":[]}').message_queue_assignments == ()
    found = bodies.parse_query_assignment(b'{"messageQueueAssignments":[{"mode":"POP"}]}')
    (assignment,) = found.message_queue_assignments or ()
    assert (assignment.message_queue, assignment.mode) == (None, "POP")


def test_a_question_for_an_assignment_says_who_asks_for_what():
    question = QueryAssignmentRequestBody(topic="T", consumer_group="g", client_id="c", strategy_name="AVG")

    assert json.loads(bodies.format_query_assignment(question))["messageModel"] == "CLUSTERING"


def test_a_message_model_without_name_here_still_fits():
    data = b'{"messageModel":"FROM_THE_FUTURE"}'

    assert bodies.parse_consumer_connection(data).message_model == "FROM_THE_FUTURE"


def remembered_route(number: int, length: int) -> bytes:
    return b'{"orderTopicConf":"%d:%s"}' % (number, b"x" * length)


def test_a_route_read_again_is_the_same_value():
    first, again = (bodies.parse_topic_route(remembered_route(1, 100)) for _ in range(2))

    assert first is again


@pytest.mark.process  # it works for seconds
@pytest.mark.parametrize(
    ("count", "length"), [pytest.param(50, 2_000_000, id="large"), pytest.param(5_000, 10_000, id="small")]
)
def test_remembered_routes_take_a_bounded_amount_of_memory(count, length):
    gc.collect()
    tracemalloc.start()
    for number in range(count):
        bodies.parse_topic_route(remembered_route(number, length))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept < 20_000_000


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@given(data=st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_protocol_error(parse, data):
    for body in (data, b'{"table":' + data + b"}", b'{"offsetTable":{' + data + b"}}"):
        try:
            parse(body)
        except ProtocolError:
            continue
