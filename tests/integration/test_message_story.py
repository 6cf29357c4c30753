"""``rmqtools message story`` on a real group of Java's members and ours."""

import uuid
from collections import Counter
from contextlib import ExitStack
from functools import partial

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.model.message_story import MessageStory
from tests.support.cluster_scene import wait_until
from tests.support.java_consumer import JavaConsumer, PythonConsumer

pytestmark = pytest.mark.broker

LAST_SECONDS = "the last seconds: clients send their trace records every 5 s"


def deliveries(stories: list[MessageStory]) -> Counter[tuple[str, str, int | None, bool]]:
    """Count the deliveries whose end has a record, by message, member, number, and whether they failed."""
    return Counter(
        (story.msg_id, one.client.name, one.reconsume_times, one.result != "success")
        for story in stories
        for group in story.groups
        for one in group.deliveries
        if one.result is not None  # Java's members send a record of the end later than that of the begin
    )


def logged(members: list[JavaConsumer]) -> Counter[tuple[str, str, int | None, bool]]:
    """Every delivery that the listeners have printed."""
    return Counter(
        (row["msgId"], member.client_id, row["reconsumeTimes"], row["failed"])
        for member in members
        for row in member.messages
    )


def all_consumed(members: list[JavaConsumer], count: int) -> bool:
    consumed = {row["msgId"] for member in members for row in member.messages if not row["failed"]}
    return len(consumed) == count


@pytest.mark.parametrize(
    ("count", "of_each", "options"),
    [
        pytest.param(16, 1, (), id="16-messages", marks=pytest.mark.slow),
        pytest.param(200, 2, (), id="200-messages", marks=pytest.mark.slow),
        pytest.param(200, 2, ("--orderly",), id="200-messages-in-order", marks=pytest.mark.slow),
    ],
)
def test_the_stories_of_a_mixed_group_have_each_logged_delivery_with_its_member_and_no_other(
    java_peer, local_cluster, admin, make_topic, count, of_each, options
):
    topic, traces, group = make_topic(), make_topic(queues=1), f"group-{uuid.uuid4().hex[:12]}"
    servers = local_cluster.name_server
    arguments = (servers, group, topic, "--print", "--seed", "46", "--trace", traces, *options)
    java = (java_peer, *arguments, "--instance", "DEFAULT")
    with ExitStack() as stack:
        makers = [partial(JavaConsumer, *java)] * of_each + [partial(PythonConsumer, *arguments)] * of_each
        members = [stack.enter_context(make()) for make in makers]
        for member in members:
            member.await_assigned(8 // len(members))
        shop = ProducerConfig(name_server=servers, group="shop", enable_trace=True, trace_topic=traces)
        with Producer(shop) as producer:
            sent = [
                producer.send(Message(topic, b"%d" % number, keys=f"order-{number}"))
                for number in range(count)
            ]
        wait_until(partial(all_consumed, members, count))

        def told() -> list[MessageStory]:
            return [
                story
                for result in sent
                for story in admin.fetch_message_stories(result.msg_id, topic=topic, trace_topic=traces)
            ]

        wait_until(lambda: deliveries(told()).total() >= logged(members).total())
        seen, stories = logged(members), told()

    assert deliveries(stories) == seen
    assert {row["failed"] for member in members for row in member.messages} == {False, True}
    assert all(member.messages for member in members)
    assert {text for story in stories for text in story.unknown} <= {LAST_SECONDS}
    assert {(story.sendings[0].group, len(story.stored)) for story in stories} == {("shop", 1)}
