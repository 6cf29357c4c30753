"""The settings of writes, made from the options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rmqtools import ProducerConfig
from rmqtools.errors import ConfigError
from rmqtools.model.names import can_be_sent_to
from rmqtools.model.staged import decisions_topic
from spark_connector.options.bad_row_policy import BadRowPolicy
from spark_connector.options.client_settings import client_config, refuse_options
from spark_connector.options.option import GivenOptions, Where
from spark_connector.options.option_table import option_values
from spark_connector.options.queue_selectors import MakeSelector, selector_maker

_SELECTOR_SETTINGS: Final = "queueSelector.*"
_REQUEST_BYTES: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class Staging:
    """The settings of an exactly-once write.

    Attributes:
        topic: the topic of staged rows.
        longest_outage: seconds after which a write must still be able to finish.
        keep_first: whether rows that differ from the stored ones are dropped.
    """

    topic: str
    longest_outage: float
    keep_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The settings of a write.

    Attributes:
        producer: settings of the producer.
        topic: topic of all rows; None: every row names its own.
        make_selector: makes the queue selector; None: round robin.
        stamp: whether messages get stamps.
        id_column: column that the stamp's hash covers; None: the whole row.
        stamp_id: the user's id of the write, for stamps; None: none.
        on_bad_row: what to do with rows that cannot be sent.
        create_topic: whether brokers may create a missing topic.
        keep_queue: whether rows that were read go to the queue they name.
        is_copy: whether the rows were read, as the frame's columns show.
        unsent: columns that are not sent.
        staging: where rows are staged; None: they are written at least once.
    """

    producer: ProducerConfig
    topic: str | None = None
    make_selector: MakeSelector | None = None
    stamp: bool = False
    id_column: str | None = None
    stamp_id: str | None = None
    on_bad_row: BadRowPolicy = field(default_factory=BadRowPolicy)
    create_topic: bool = True
    keep_queue: bool = False
    is_copy: bool = False
    unsent: tuple[str, ...] = ()
    staging: Staging | None = None

    @property
    def sent_topic(self) -> str | None:
        """The topic that tasks send rows to; None: every row names its own."""
        return self.topic if self.staging is None else self.staging.topic


def write_options(given: GivenOptions) -> WriteOptions:
    """Make the settings of a write.

    Raises:
        ConfigError: options are missing, conflict, or belong to reads.
    """
    refuse_options(given, Where.READ, Where.BATCH, Where.STREAM, doing="writing")
    values = option_values(given)
    _check_topic(values["topic"])
    staging = _staging(given, values)
    for name in ("idColumn", "stampId"):
        is_used = values["stamp"] or (name == "stampId" and staging is not None)
        if values[name] is not None and not is_used:
            raise ConfigError(f"option {name!r} is for stamps: set option 'stamp' to true, or leave it out")
    settings = {one.key: one.value for one in given if one.option.name == _SELECTOR_SETTINGS}
    return WriteOptions(
        producer=_producer(given),
        topic=values["topic"],
        make_selector=selector_maker(values["queueSelector"], settings),
        stamp=values["stamp"],
        id_column=values["idColumn"],
        stamp_id=values["stampId"],
        on_bad_row=_on_bad_row(values["onBadRow"], values["topic"], staging),
        create_topic=values["createTopic"],
        keep_queue=values["keepQueue"],
        staging=staging,
    )


def _check_topic(topic: str | None) -> None:
    """Refuse a name with which every row would be bad."""
    if topic is not None and not can_be_sent_to(topic):
        raise ConfigError(
            f"option 'topic' = {topic!r}: nothing can be sent to it; want a topic of your own, with a name "
            "of 1 to 127 characters of %|a-zA-Z0-9_-"
        )


def _staging(given: GivenOptions, values: Mapping[str, Any]) -> Staging | None:
    if values["delivery"] != "exactlyonce":
        for one in given:
            if one.option.name in ("stagingTopic", "longestOutage", "onChangedRows"):
                raise ConfigError(
                    f"option {one.name!r} is for delivery=exactlyOnce: set it, or leave this out"
                )
        return None
    if (topic := values["topic"]) is None:
        raise ConfigError(
            "option 'delivery' = 'exactlyOnce' needs option 'topic': rows with a topic each cannot be staged"
        )
    staging = values["stagingTopic"] or f"{topic}-staging"
    if staging == topic:
        raise ConfigError(f"option 'stagingTopic' = {staging!r}: rows are copied to this topic; name another")
    return Staging(staging, values["longestOutage"], values["onChangedRows"] == "keepfirst")


def _on_bad_row(policy: BadRowPolicy, topic: str | None, staging: Staging | None) -> BadRowPolicy:
    if staging is not None and policy.topic in (staging.topic, decisions_topic(staging.topic)):
        raise ConfigError(
            f"option 'onBadRow' = 'topic:{policy.topic}': this topic is for staged rows or decisions alone, "
            "and reads refuse it; name another one"
        )
    if topic is not None and policy.topic == topic:
        raise ConfigError(
            f"option 'onBadRow' = 'topic:{topic}': rows are written to this topic; name another one"
        )
    return policy


def _producer(given: GivenOptions) -> ProducerConfig:
    """Make the producer's settings. Two have other defaults than the client's.

    Latency fault avoidance is on: with one of three brokers paused, a third of all requests would time out,
    until the name server removes the broker after 2 minutes. Requests are twice as large, because a request
    costs brokers and tasks the same whatever is in it.
    """
    config = client_config(
        ProducerConfig, given, send_latency_fault_enable="true", max_batch_bytes=str(_REQUEST_BYTES)
    )
    if config.enable_trace:
        raise ConfigError(
            "option 'rocketmq.enableTrace': rows are sent encoded, which cannot be traced; drop it"
        )
    return config
