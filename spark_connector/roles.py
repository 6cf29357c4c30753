"""Which options a read and a write need, and which exclude each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from rmqtools import ClientConfig, ProducerConfig
from rmqtools.errors import ConfigError
from spark_connector.offsets import OffsetSpec
from spark_connector.options import GivenOptions, Where, option_values

_Config = TypeVar("_Config", bound=ClientConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a batch read needs to know."""

    client: ClientConfig
    topics: tuple[str, ...]
    starting_offsets: OffsetSpec
    ending_offsets: OffsetSpec
    min_partitions: int | None
    max_records_per_partition: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write needs to know; no topic: every row names its own."""

    producer: ProducerConfig
    topic: str | None


def read_options(given: GivenOptions) -> ReadOptions:
    """The options of a batch read.

    Raises:
        ConfigError: required ones are missing, exclude each other, or are for writes.
    """
    _refuse(given, Where.WRITE, "reading")
    values = option_values(given)
    topics = [values[name] for name in ("topic", "topics") if values[name] is not None]
    if len(topics) != 1:
        text = "both 'topic' and 'topics' are" if topics else "neither option 'topic' nor 'topics' is"
        raise ConfigError(f"what to read: {text} given; give one, e.g. option('topic', 'Orders')")
    return ReadOptions(
        client=_client_config(ClientConfig, given),
        topics=(topics[0],) if isinstance(topics[0], str) else topics[0],
        starting_offsets=values["startingOffsets"],
        ending_offsets=values["endingOffsets"],
        min_partitions=values["minPartitions"],
        max_records_per_partition=values["maxRecordsPerPartition"],
    )


def write_options(given: GivenOptions) -> WriteOptions:
    """The options of a write.

    Raises:
        ConfigError: required ones are missing, or are for reads.
    """
    _refuse(given, Where.READ, "writing")
    producer = _client_config(ProducerConfig, given)
    return WriteOptions(producer=producer, topic=option_values(given)["topic"])


def _refuse(given: GivenOptions, where: Where, doing: str) -> None:
    for one in given:
        if one.option.where is where:
            raise ConfigError(f"option {one.name!r} is for {where.value} only: leave it out when {doing}")


def _client_config(kind: type[_Config], given: GivenOptions) -> _Config:
    """Hand options to the client's own checks; its errors then name settings, ours the options."""
    settings = _settings(given)
    _check_name_server(settings)
    try:
        return kind.from_mapping(settings)
    except ConfigError as error:
        names = ", ".join(one.name for one in given if one.option.setting is not None)
        raise ConfigError(f"among the options {names}: {error}") from None


def _settings(given: GivenOptions) -> dict[str, str]:
    """Client settings by name, in the one spelling that lets two options for the same be seen."""
    settings: dict[str, str] = {}
    origin: dict[str, str] = {}
    for one in given:
        if one.option.setting is None:
            continue
        setting = _plain(one.option.setting + one.key)
        if setting in settings:
            raise ConfigError(f"options {origin[setting]!r} and {one.name!r} are the same: give one")
        settings[setting], origin[setting] = one.value, one.name
    return settings


def _plain(setting: str) -> str:
    return setting.lower().replace("_", "").replace("-", "").replace(".", "")


def _check_name_server(settings: Mapping[str, str]) -> None:
    given = {name: text for name, text in settings.items() if name == _plain("name_server")}
    try:
        ClientConfig.from_mapping(given)
    except ConfigError as error:
        what = f"= {next(iter(given.values()))!r}" if given else "is required, as host:port"
        raise ConfigError(f"option 'nameServer' {what}: {error}") from None
