"""Refuses missing topics if brokers may not create them: options ``createTopic`` and ``keepQueue``."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from rmqtools import Admin
from rmqtools.errors import RocketMQError, TopicNotFoundError
from spark_connector.options.selection import EVERY_TOPIC, similar_topics
from spark_connector.options.write_settings import WriteOptions
from spark_connector.worker.clients import borrowed_client

if TYPE_CHECKING:
    import pyarrow as pa

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


def check_topics(options: WriteOptions, batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """Pass on batches whose topics exist; the first batch is checked before any is sent.

    Raises:
        TopicNotFoundError: a topic has no route; the rows of its batch have not been sent.
    """
    known: set[str] = set()
    for batch in batches:
        wanted = (
            {options.topic}
            if options.topic is not None
            else set(pc.unique(batch.column("topic")).to_pylist())
        )
        _refuse_missing(options, sorted(topic for topic in wanted - known if topic is not None), _NO_CREATION)
        known |= wanted
        yield batch


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
