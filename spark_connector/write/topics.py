"""Refuses missing topics if brokers may not create them: options ``createTopic`` and ``keepQueue``."""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rmqtools import Admin
from rmqtools.errors import RocketMQError, TopicNotFoundError
from rmqtools.model.names import can_be_sent_to
from spark_connector.options.selection import EVERY_TOPIC, similar_topics
from spark_connector.options.write_settings import WriteOptions
from spark_connector.worker.clients import borrowed_client

_NO_CREATION: Final = "option 'createTopic' is false: correct the name, or make the topic first"


def check_topic(options: WriteOptions) -> None:
    """Refuse a missing topic of options ``topic`` and ``onBadRow``; does nothing if brokers may create it.

    Runs on the driver, so no row was sent. Rows that keep their queues need a topic that exists.

    Raises:
        TopicNotFoundError: it has no route.
    """
    named = [topic for topic in (options.topic, options.on_bad_row.topic) if topic is not None]
    if not options.create_topic and named:
        _refuse_missing(options, named, _NO_CREATION)
    elif options.keep_queue and options.topic is not None:
        _refuse_missing(
            options,
            [options.topic],
            "option 'keepQueue' is true: make the topic first, with the queues of the one that was read",
        )


def check_topics(options: WriteOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on batches whose topics exist; the first batch is checked before any is sent.

    A name that no topic can have makes a bad row, which sending refuses.

    Raises:
        TopicNotFoundError: a topic has no route; the rows of its batch have not been sent.
    """
    known: set[str] = set()
    for batch in batches:
        wanted = _topics_of(batch) if options.topic is None else {options.topic}
        _refuse_missing(options, sorted(wanted - known), _NO_CREATION)
        known |= wanted
        yield batch


def _topics_of(batch: pa.RecordBatch) -> set[str]:
    """Return the distinct topics of the rows, without names that no topic can have."""
    names = pc.unique(batch.column("topic").cast(pa.binary())).drop_null().to_pylist()
    return set(filter(can_be_sent_to, (name.decode(errors="replace") for name in names)))


def _refuse_missing(options: WriteOptions, topics: Iterable[str], why: str) -> None:
    with borrowed_client(options.producer) as client:
        admin = Admin(client)
        for topic in topics:
            try:
                admin.fetch_publish_queues(topic)
            except TopicNotFoundError as error:
                hint = similar_topics([topic], _user_topics(admin))
                raise TopicNotFoundError(f"topic {topic!r} does not exist{hint} and {why}") from error


def _user_topics(admin: Admin) -> list[str]:
    """Return all topics that users made, for the text of an error; empty if that is refused."""
    try:
        reserved = admin.fetch_cluster_info().own_topics
        return EVERY_TOPIC.select(admin.fetch_topic_list(), reserved=reserved)
    except RocketMQError:
        return []
