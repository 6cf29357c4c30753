"""Stories of messages, from brokers and trace records: alike on the fake cluster and on a real one."""

from collections.abc import Iterator

import pytest

from rmqtools import Message, Producer, ProducerConfig
from rmqtools.errors import ConfigError, MessageRejectedError, TopicNotFoundError
from rmqtools.model.message_story import MessageStory
from tests.behaviour.site import until
from tests.support.listening import Heard, listening
from tests.support.patience import PATIENT_REQUEST


@pytest.fixture
def traces(site) -> str:
    return site.new_topic()


@pytest.fixture
def producer(site, traces) -> Iterator[Producer]:
    config = ProducerConfig(
        name_server=site.name_server,
        group="shop",
        enable_trace=True,
        trace_topic=traces,
        send_timeout=PATIENT_REQUEST,
    )
    with Producer(config) as producer:
        yield producer


def has_dead_letter(stories: list[MessageStory]) -> bool:
    return any(group.dead_letters for story in stories for group in story.groups)


def results(stories: list[MessageStory]) -> list[str]:
    """The results of the deliveries whose end is recorded."""
    return [
        one.result for story in stories for group in story.groups for one in group.deliveries if one.result
    ]


def fail_until_dead(messages, context) -> None:
    context.delay_level_when_next_consume = 1
    raise RuntimeError("told to fail")


def test_a_message_is_told_from_its_birth_to_its_dead_letter(site, producer, topic, group, traces):
    sent = producer.send(Message(topic, b"body", keys=["order-17", "customer-3"], tags="new"))
    producer.close()  # sends its records
    heard, settings = Heard(fail_until_dead), {"enable_trace": True, "trace_topic": traces}
    member = listening(site.name_server, topic, heard, group=group, max_reconsume_times=1, **settings)
    with member as consumer:
        heard.wait(2)
        until(lambda: has_dead_letter(site.admin.fetch_message_stories(sent.msg_id, topic=topic)))
    until(lambda: len(results(site.admin.fetch_message_stories("order-17", trace_topic=traces))) == 2)
    (story,) = site.admin.fetch_message_stories("order-17", trace_topic=traces)

    assert (story.topic, story.msg_id, story.tags, story.keys) == (
        topic,
        sent.msg_id,
        "new",
        "order-17 customer-3",
    )
    assert [(event.kind.value, event.group) for event in story.events if event.kind.value != "born"] == [
        ("sent", "shop"),
        ("stored", ""),
        ("delivered", group),
        ("sent back", group),
        ("retry", group),
        ("delivered", group),
        ("dead letter", group),
    ]
    (told,) = story.groups
    assert [(one.reconsume_times, one.result) for one in told.deliveries] == [
        (0, "exception"),
        (1, "exception"),
    ]
    assert {one.client.name.partition("#")[0] for one in told.deliveries} == {
        consumer.client_id.partition("#")[0]
    }
    assert [retry.number for retry in told.retries] == [1]


@pytest.mark.parametrize("name", ["msg_id", "offset_msg_id"])
def test_ids_find_a_message(site, producer, topic, name):
    sent = producer.send(Message(topic, b"body"))
    until(lambda: site.admin.query_messages(topic, sent.msg_id, unique=True))
    (story,) = site.admin.fetch_message_stories(getattr(sent, name), topic=topic)

    assert (story.topic, story.msg_id, len(story.stored)) == (topic, sent.msg_id, 1)


def test_all_messages_of_a_key_are_told_up_to_the_limit(site, producer, topic):
    sent = [producer.send(Message(topic, b"body", keys="k")).msg_id for _ in range(3)]
    until(lambda: len(site.admin.query_messages(topic, "k")) == 3)

    assert {story.msg_id for story in site.admin.fetch_message_stories("k", topic=topic)} == set(sent)
    assert len(site.admin.fetch_message_stories("k", topic=topic, max_num=2)) == 2


def test_a_key_that_nobody_has_used_has_no_story(site, topic, traces):
    assert site.admin.fetch_message_stories("nobody-s", trace_topic=traces) == []
    assert site.admin.fetch_message_stories("nobody-s", topic=topic, trace_topic=traces) == []


def test_what_cannot_be_looked_up_is_refused(site, topic):
    with pytest.raises(MessageRejectedError, match="want a unique key"):
        site.admin.fetch_message_stories("")
    with pytest.raises(ConfigError, match="max_num=0"):
        site.admin.fetch_message_stories("k", topic=topic, max_num=0)
    with pytest.raises(TopicNotFoundError):
        site.admin.fetch_message_stories("k", topic="no-such-topic")


def test_a_topic_that_no_record_has_must_be_given(site, topic, traces):
    with Producer(ProducerConfig(name_server=site.name_server, group="silent")) as silent:
        sent = silent.send(Message(topic, b"body"))
    heard = Heard()
    with listening(site.name_server, topic, heard, enable_trace=True, trace_topic=traces):
        heard.wait(1)
    until(lambda: site.admin.query_messages(traces, sent.msg_id))

    with pytest.raises(ConfigError, match=f"topic of message '{sent.msg_id}' is not known: .* give topic"):
        site.admin.fetch_message_stories(sent.msg_id, trace_topic=traces)
