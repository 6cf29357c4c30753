import pytest

from rmqtools.model.group import Connection, SubscriptionData
from rmqtools.model.group_view import GroupMember, WaitingQueue
from rmqtools.model.queue import MessageQueue
from rmqtools.model.running_info import ConsumerRunningInfo, PopProcessQueueInfo, ProcessQueueInfo
from rmqtools.policy.group_member import (
    format_waiting,
    member_of,
    silent_member,
    strategy_name,
    with_each_queue,
)

CONNECTION = Connection(client_id="10.0.0.1@1", client_addr="10.0.0.1:4000", language="JAVA", version=513)
PULLED, POPPED, DROPPED = (MessageQueue("ns%T", "a", queue_id) for queue_id in range(3))


def test_a_member_owns_what_it_pulls_and_pops_but_not_what_it_has_dropped():
    info = ConsumerRunningInfo(
        mq_table={DROPPED: ProcessQueueInfo(dropped=True), PULLED: ProcessQueueInfo()},
        mq_pop_table={POPPED: PopProcessQueueInfo(), DROPPED: PopProcessQueueInfo(dropped=True)},
    )

    member = member_of(CONNECTION, info)

    assert member.queues == (PULLED, POPPED)
    assert member.pops == (POPPED,)


def test_topics_are_named_without_the_namespace_and_the_retry_topic_is_no_subscription():
    subscriptions = (SubscriptionData(topic="ns%T", sub_string="a"), SubscriptionData(topic="%RETRY%ns%g"))
    info = ConsumerRunningInfo(subscription_set=subscriptions, mq_table={PULLED: ProcessQueueInfo()})

    member = member_of(CONNECTION, info, "ns")

    assert member.subscriptions == {("T", "a", "TAG")}
    assert member.queues == (MessageQueue("T", "a", 0),)


def test_what_a_member_says_of_itself_is_read():
    told = {"PROP_CONSUMEORDERLY": "true", "PROP_CLIENT_VERSION": "V5_5_0", "PROP_RMQTOOLS_PIN_VERSION": "7"}
    told |= {"PROP_RMQTOOLS_VERSION": "0.3.0", "PROP_RMQTOOLS_NOW_MS": "1700000000000"}

    member = member_of(CONNECTION, ConsumerRunningInfo(properties=told))

    assert (member.orderly, member.version, member.pin_version) == (True, "V5_5_0", 7)
    assert (member.rmqtools_version, member.now_ms) == ("0.3.0", 1_700_000_000_000)


def test_what_a_member_does_not_say_is_not_known():
    member = member_of(CONNECTION, ConsumerRunningInfo())

    assert (member.orderly, member.version, member.pin_version, member.strategy) == (None, "513", None, None)
    assert member.now_ms == 0


def test_a_silent_member_has_an_error():
    assert silent_member(CONNECTION, "no answer").error == "no answer"


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"PROP_RMQTOOLS_STRATEGY": "PINS"}, "PINS"),
        (
            {
                "allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer.rebalance."
                "AllocateMessageQueueConsistentHash@3082b77"
            },
            "CONSISTENT_HASH",
        ),
        ({"allocateMessageQueueStrategy": "com.example.Mine$Own@1f"}, "Mine$Own"),
        ({"allocateMessageQueueStrategy": "something else"}, None),
        ({}, None),
    ],
)
def test_the_strategy_is_told_by_our_property_or_by_the_class_that_java_writes(properties, name):
    assert strategy_name(properties) == name


def test_waiting_queues_and_their_text_are_each_others_inverse_and_other_text_is_left_out():
    waiting = (WaitingQueue(queue=PULLED, queue_offset=5, times=2),)
    told = {"PROP_RMQTOOLS_WAITING": format_waiting(waiting)}

    (read,) = member_of(CONNECTION, ConsumerRunningInfo(properties=told), "ns").waiting
    assert read == WaitingQueue(queue=MessageQueue("T", "a", 0), queue_offset=5, times=2)
    for text in ("{}", "[1]", '[["T"]]', "no JSON"):
        told = {"PROP_RMQTOOLS_WAITING": text, "PROP_RMQTOOLS_LONGEST_CALL": "soon"}
        other = member_of(CONNECTION, ConsumerRunningInfo(properties=told))
        assert (other.waiting, other.longest_call) == ((), None)


def test_name_servers_are_sorted_so_that_members_can_be_compared():
    told = {"PROP_NAMESERVER_ADDR": "b:1;a:1;", "messageModel": "BROADCASTING"}

    member = member_of(CONNECTION, ConsumerRunningInfo(properties=told))

    assert (member.name_server, member.message_model) == ("a:1;b:1", "BROADCASTING")


def test_all_queues_of_a_broker_are_those_that_it_has():
    queues = [MessageQueue("T", broker_name, number) for broker_name in "ab" for number in (0, 1)]
    all_of_a, of_b = MessageQueue("T", "a", -1), queues[2]
    member = with_each_queue(GroupMember(client_id="x", queues=(all_of_a, of_b), pops=(all_of_a,)), queues)

    assert (member.queues, member.pops) == (tuple(queues[:3]), tuple(queues[:2]))


def test_all_queues_of_a_broker_that_does_not_answer_stay_as_they_are():
    everything = MessageQueue("T", "a", -1)

    assert with_each_queue(GroupMember(client_id="x", queues=(everything,)), []).queues == (everything,)
