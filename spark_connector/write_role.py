"""Which options a write needs, and which exclude each other."""

from dataclasses import dataclass, replace
from typing import Final

from rmqtools import ProducerConfig
from rmqtools.errors import ConfigError
from spark_connector.option import GivenOptions, Where
from spark_connector.options import option_values
from spark_connector.queue_selectors import MakeSelector, selector_maker
from spark_connector.roles import client_config, refuse_options

_SELECTOR_SETTINGS: Final = "queueSelector.*"
_FAULT_SETTING: Final = "sendlatencyfaultenable"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write needs to know.

    Attributes:
        producer: how to send.
        topic: where to; None: every row names its own.
        make_selector: makes what chooses queues; None: queues in turn.
        stamp: whether messages get stamps.
        id_column: what their hash is of; None: the whole row.
        unsent: columns of the rows that are not sent.
    """

    producer: ProducerConfig
    topic: str | None = None
    make_selector: MakeSelector | None = None
    stamp: bool = False
    id_column: str | None = None
    unsent: tuple[str, ...] = ()


def write_options(given: GivenOptions) -> WriteOptions:
    """The options of a write.

    Raises:
        ConfigError: required ones are missing, exclude each other, or are for reads.
    """
    refuse_options(given, Where.READ, Where.BATCH, Where.STREAM, doing="writing")
    values = option_values(given)
    if values["idColumn"] is not None and not values["stamp"]:
        raise ConfigError("option 'idColumn' is for stamps: set option 'stamp' to true, or leave it out")
    settings = {one.key: one.value for one in given if one.option.name == _SELECTOR_SETTINGS}
    return WriteOptions(
        producer=_producer(given),
        topic=values["topic"],
        make_selector=selector_maker(values["queueSelector"], settings),
        stamp=values["stamp"],
        id_column=values["idColumn"],
    )


def _producer(given: GivenOptions) -> ProducerConfig:
    """How to send: latency fault avoidance is on unless switched off.

    Other than the Java client: of three brokers a paused one costs a third of all requests a timeout, until
    the name server forgets it after 2 minutes.
    """
    config = client_config(ProducerConfig, given)
    if config.enable_trace:
        raise ConfigError(
            "option 'rocketmq.enableTrace': rows are sent encoded, which leaves no trace; drop it"
        )
    if any(one.key.lower().replace("_", "") == _FAULT_SETTING for one in given):
        return config
    return replace(config, send_latency_fault_enable=True)
