"""Requests about brokers: their statistics and settings, and which of them take no messages."""

from collections.abc import Mapping

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import BrokerError, TopicNotFoundError
from rmqtools.model.codes import RequestCode
from rmqtools.model.names import SCHEDULE_TOPIC
from rmqtools.protocol.wire.bodies import parse_kv_table, parse_properties_text
from rmqtools.protocol.wire.command import RemotingCommand


async def fetch_runtime_info(client: ClientCore, addr: str) -> dict[str, str]:
    """Return a broker's statistics by name, as text (GET_BROKER_RUNTIME_INFO).

    A broker takes its first sample a second after its start, and refuses until then: it is asked again, for
    ``request_timeout`` at most. Source of the rule: StoreStatsService (broker).
    """
    command = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
    answer = await look_up(
        lambda: client.remoting.invoke_ok(addr, command),
        timeout=client.config.request_timeout,
        may_retry=_has_no_sample,
    )
    return await parse_aside(parse_kv_table, answer.body)


def _has_no_sample(error: BaseException) -> bool:
    return isinstance(error, BrokerError) and "NoSuchElementException" in error.remark


async def fetch_settings(client: ClientCore, addr: str) -> dict[str, str]:
    """Return the settings of a running broker by name, as text (GET_BROKER_CONFIG)."""
    command = RemotingCommand(RequestCode.GET_BROKER_CONFIG)
    return parse_properties_text((await client.remoting.invoke_ok(addr, command)).body)


async def update_settings(client: ClientCore, addr: str, settings: Mapping[str, str]) -> None:
    """Change settings of a running broker (UPDATE_BROKER_CONFIG)."""
    body = "".join(f"{name}={value}\n" for name, value in settings.items()).encode()
    await client.remoting.invoke_ok(addr, RemotingCommand(RequestCode.UPDATE_BROKER_CONFIG, body=body))


async def fetch_read_only(client: ClientCore) -> list[str]:
    """Return the names of the brokers that routes show as not writable, sorted."""
    try:
        route = await client.name_server.fetch_route(SCHEDULE_TOPIC)
    except TopicNotFoundError:  # no broker is registered
        return []
    return sorted(data.broker_name for data in route.queue_datas if not data.is_writable)
