import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.model.group import ConsumeFromWhere, MessageQueueAssignment
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.assignment import is_client_rebalance, plan_assignment, pop_init_mode

Q = [MessageQueue("T", "a", queue_id) for queue_id in range(4)]
OTHER = MessageQueue("other", "a", 0)
QUEUES = st.lists(st.sampled_from([*Q, OTHER]), unique=True)
ASSIGNMENTS = st.lists(
    st.builds(
        MessageQueueAssignment,
        message_queue=st.none() | st.sampled_from(Q),
        mode=st.sampled_from(["PULL", "POP"]),
    )
)


def pull(*queues):
    return [MessageQueueAssignment(message_queue=queue) for queue in queues]


def pop(*queues):
    return [MessageQueueAssignment(message_queue=queue, mode="POP") for queue in queues]


def plan(assignments, topic="T", **held):
    return plan_assignment(topic, "g", assignments=assignments, **held)


def test_queues_of_other_topics_are_left_alone():
    assert plan([], popped=[OTHER]).drop_pop == ()


def test_an_expired_queue_is_dropped_and_added_again():
    made = plan(pop(Q[1]), popped=[Q[1]], expired=[Q[1]])

    assert (made.drop_pop, made.add_pop) == ((Q[1],), (Q[1],))


def test_a_retry_topic_has_no_retry_topic():
    assert plan(pull(MessageQueue("%RETRY%g", "a", 0)), topic="%RETRY%g").subscribe is None


@pytest.mark.process
@given(ASSIGNMENTS, QUEUES)
def test_who_follows_the_plan_holds_what_is_assigned_and_what_is_of_other_topics(assignments, popped):
    made = plan(assignments, popped=popped)

    assert set(popped) - set(made.drop_pop) | set(made.add_pop) == {*made.pop, *({OTHER} & set(popped))}


@pytest.mark.parametrize(
    ("configured", "orderly", "broadcasting", "by_client"),
    [
        (False, False, False, False),
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, True),
    ],
)
def test_a_broker_is_asked_only_where_nothing_forbids_it(configured, orderly, broadcasting, by_client):
    asked = is_client_rebalance(configured=configured, orderly=orderly, broadcasting=broadcasting)

    assert asked is by_client


def test_popping_begins_at_the_first_message_or_with_new_ones():
    assert [pop_init_mode(where) for where in ConsumeFromWhere] == [1, 0, 1]


def test_a_mode_that_is_not_known_is_pulled():
    assert plan([MessageQueueAssignment(message_queue=Q[0], mode="NEW")]).pull == (Q[0],)


@pytest.mark.parametrize(
    ("assignments", "subscribe", "unsubscribe"),
    [
        (pull(Q[0]), "%RETRY%g_T", None),
        (pop(Q[0]), None, "%RETRY%g_T"),
        (pull(Q[0]) + pop(Q[1]), None, None),
        ([], None, None),
    ],
)
def test_the_retry_topic_of_popping_is_subscribed_to_while_all_is_pulled(assignments, subscribe, unsubscribe):
    made = plan(assignments)

    assert (made.subscribe, made.unsubscribe) == (subscribe, unsubscribe)
