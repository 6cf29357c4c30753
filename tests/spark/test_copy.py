"""A topic is copied by reading and writing it, with nothing left out by hand."""

import uuid
from collections import Counter, defaultdict

import pytest

from rmqtools import Message
from rmqtools.errors import TopicNotFoundError
from tests.spark.data import HARD_ROWS, WRITE_SCHEMA, message, messages_of
from tests.spark.streams import error_of
from tests.support.patience import PATIENCE


@pytest.fixture
def copy(read, save):
    """``copy(source, to=target, keepQueue="true")``."""
    return lambda source, *, to, **options: save(read(topic=source), topic=to, **options)


def test_a_copy_is_equal_in_body_tags_keys_and_the_users_properties(make_topic, write, read, copy):
    source, target = make_topic(), make_topic()
    write(HARD_ROWS, WRITE_SCHEMA, topic=source)

    copy(source, to=target)

    assert messages_of(read(topic=target).collect()) == Counter(message(*row) for row in HARD_ROWS)


def test_a_copy_keeps_queues_and_their_order_on_request(make_topic, producer, admin, read, copy):
    source, target = make_topic(queues=2), make_topic(queues=2)
    queues = admin.fetch_publish_queues(source)
    for number in range(200):
        producer.send(Message(source, b"%d" % number), queue=queues[number % 3])
    admin.await_readable(dict.fromkeys(queues[:2], 67), timeout=PATIENCE)

    copy(source, to=target, keepQueue="true")

    def by_queue(topic):
        found = defaultdict(list)
        for row in read(topic=topic).orderBy("queueOffset").collect():
            found[row.brokerName, row.queueId].append(bytes(row.body))
        return found

    assert by_queue(target) == by_queue(source)
    assert sum(map(len, by_queue(target).values())) == 200


def test_a_queue_that_the_copy_lacks_is_refused_before_its_rows_are_sent(make_topic, producer, admin, copy):
    source, target = make_topic(queues=4), make_topic(queues=1)
    queue = next(one for one in admin.fetch_publish_queues(source) if one.queue_id == 3)
    producer.send(Message(source, b"x"), queue=queue)
    admin.await_readable({queue: 1}, timeout=PATIENCE)

    text = error_of(lambda: copy(source, to=target, keepQueue="true"))

    assert f"option 'keepQueue': {target}/{queue.broker_name}/3 does not exist among" in text
    assert [admin.max_offset(one) for one in admin.fetch_publish_queues(target)] == [0, 0]


def test_a_copy_that_keeps_queues_is_refused_on_the_driver_if_its_topic_is_missing(
    make_topic, write, copy, admin
):
    source, missing = make_topic(), f"missing-{uuid.uuid4().hex[:12]}"
    write([("a",)], "body string", topic=source)

    text = error_of(lambda: copy(source, to=missing, keepQueue="true"))

    assert f"topic '{missing}' does not exist and option 'keepQueue' is true: make the topic first" in text
    assert "Job aborted" not in text
    with pytest.raises(TopicNotFoundError):
        admin.fetch_publish_queues(missing)


def test_a_copy_without_properties_keeps_the_columns(make_topic, write, read, save):
    source, target = make_topic(), make_topic()
    write([("a", "t", "k")], "body string, tags string, keys string", topic=source)

    save(read(topic=source, includeProperties="false", offsetMsgId="true"), topic=target)

    (row,) = read(topic=target).collect()
    assert (bytes(row.body), row.tags, row.keys) == (b"a", "t", "k")


def test_without_the_option_topic_rows_go_to_the_topic_they_were_read_from(make_topic, write, read, save):
    topic = make_topic()
    write([("a",)], "body string", topic=topic)

    save(read(topic=topic))

    assert read(topic=topic).count() == 2


def test_a_changed_frame_that_was_read_is_written_as_it_is(make_topic, write, read, save):
    source, target = make_topic(), make_topic()
    write([("a",), ("b",)], "body string", topic=source)
    frame = read(topic=source).selectExpr("upper(decode(body, 'utf-8')) AS body", "queueOffset", "properties")

    save(frame, topic=target)

    assert {bytes(row.body) for row in read(topic=target).collect()} == {b"A", b"B"}
