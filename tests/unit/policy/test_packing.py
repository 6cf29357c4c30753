from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from rmqtools.config import ProducerConfig
from rmqtools.engine.producer.encode_send import Encoder, batch_bytes, property_text
from rmqtools.model.message import Message
from rmqtools.policy.packing import pack

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=20)
MESSAGES = st.builds(
    Message,
    topic=st.sampled_from("TU"),
    body=st.binary(min_size=1, max_size=300),
    tags=st.none() | TEXTS,
    keys=st.lists(TEXTS, max_size=2),
    properties=st.dictionaries(TEXTS, TEXTS, max_size=3),
    sharding_key=st.none() | TEXTS,
    delay_level=st.sampled_from([0, 0, 0, 3]),
)
LISTS = st.lists(MESSAGES, max_size=20)
LIMITS = st.integers(1, 2000)
LONGEST_ID = "0" * 56  # made of an IPv6 address


def sizes_of(messages: list[Message]) -> list[int]:
    return batch_bytes(messages, [property_text(message) for message in messages])


def grouped(messages: list[Message], limit: int) -> list[list[int]]:
    return [list(numbers) for numbers in pack(messages, sizes_of(messages), limit)]


def encoded_bytes(messages: list[Message]) -> int:
    encoder = Encoder(ProducerConfig(name_server="h:1"), lambda _: LONGEST_ID, lambda: 0)
    return len(encoder.encode_batch(messages).body)


@given(MESSAGES.filter(lambda message: not message.is_delayed))
def test_a_message_never_takes_more_bytes_than_said(message):
    assert encoded_bytes([message]) <= sizes_of([message])[0]


@given(LISTS, LIMITS)
def test_a_group_of_several_is_encoded_within_the_limit(messages, limit):
    groups = [[messages[number] for number in numbers] for numbers in grouped(messages, limit)]

    assert [encoded_bytes(group) for group in groups if len(group) > 1 and encoded_bytes(group) > limit] == []


@given(LISTS, LIMITS)
def test_every_message_is_in_one_group(messages, limit):
    numbers = [number for group in grouped(messages, limit) for number in group]

    assert sorted(numbers) == list(range(len(messages)))


@given(LISTS, LIMITS)
def test_a_group_has_one_topic_and_a_delayed_message_is_alone(messages, limit):
    groups = [[messages[number] for number in numbers] for numbers in grouped(messages, limit)]

    assert all(len({message.topic for message in group}) == 1 for group in groups)
    assert all(not message.is_delayed for group in groups if len(group) > 1 for message in group)


@given(LISTS, LIMITS)
def test_within_a_topic_the_order_stays(messages, limit):
    numbers = [number for group in grouped(messages, limit) for number in group]
    at_once = [number for number in numbers if not messages[number].is_delayed]
    topics = groupby(sorted(at_once, key=lambda n: messages[n].topic), lambda n: messages[n].topic)

    assert all(group == sorted(group) for group in (list(numbers) for _, numbers in topics))


def test_messages_share_a_group_up_to_the_limit_and_not_beyond():
    messages = [Message("T", b"x" * 10)] * 5
    size = sizes_of(messages)[0]

    assert grouped(messages, 2 * size) == [[0, 1], [2, 3], [4]]
    assert grouped(messages, 2 * size - 1) == [[0], [1], [2], [3], [4]]


def test_topics_that_alternate_fill_their_groups_all_the_same():
    messages = [Message(topic, b"x") for topic in "TUTU"]

    assert grouped(messages, 1000) == [[0, 2], [1, 3]]


def test_a_message_beyond_the_limit_is_alone():
    messages = [Message("T", b"x"), Message("T", b"x" * 900), Message("T", b"x")]

    assert grouped(messages, 500) == [[0], [1], [2]]


def test_of_no_messages_there_is_no_group():
    assert grouped([], 1000) == []
