"""Members that came through a proxy, by the topic in which proxies share the heartbeats of their consumers.

Brokers do not list them. Every proxy in cluster mode sends each heartbeat of a consumer, of remoting and of
gRPC clients, to this topic, so that other proxies know the member too.
Source of the rule: HeartbeatSyncer, AbstractSystemMessageSyncer (proxy 5.5.0).
"""

from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.reading.read_messages import read_messages
from rmqtools.errors import PermissionDeniedError, ProtocolError, RocketMQError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.group import HeartbeatSyncerData
from rmqtools.model.group_view import ProxiedMember
from rmqtools.model.message import MessageExt
from rmqtools.model.names import HEARTBEAT_SYNCER_TOPIC
from rmqtools.model.queue import MessageQueue, QueueRange, java_order
from rmqtools.protocol.wire.bodies import parse_proxy_heartbeat

log = get_logger(__name__)

_SINCE_MS = 60_000  # clients send a heartbeat every 30 s by default
_MOST = 4096  # heartbeats read of a queue, the newest ones


async def fetch_proxied_members(
    client: ClientCore, queues: QueueAdmin, wire_group: str
) -> tuple[ProxiedMember, ...]:
    """Return the members of a group whose heartbeats went to a proxy in the last minute, by client id.

    None if there is no proxy; none, with a warning, if the topic cannot be read.
    """
    newest: dict[str, HeartbeatSyncerData] = {}
    try:
        for queue in await queues.fetch_subscribe_queues(HEARTBEAT_SYNCER_TOPIC):
            for heartbeat in await _heartbeats(client, queues, queue):
                known = newest.get(heartbeat.client_id, heartbeat)
                is_newer = heartbeat.last_update_timestamp >= known.last_update_timestamp
                if heartbeat.group == wire_group and is_newer:
                    newest[heartbeat.client_id] = heartbeat
    except (TopicNotFoundError, PermissionDeniedError):
        return ()  # no proxy in cluster mode has ever run
    except RocketMQError as error:
        log.warning("proxied_members_unknown", topic=HEARTBEAT_SYNCER_TOPIC, error=str(error))
        return ()
    return tuple(
        ProxiedMember(client_id=client_id, proxy=":".join(newest[client_id].local_proxy_id.split("%")[:2]))
        for client_id in sorted(newest, key=java_order)
        if newest[client_id].heartbeat_type == "REGISTER"
    )


async def _heartbeats(
    client: ClientCore, queues: QueueAdmin, queue: MessageQueue
) -> list[HeartbeatSyncerData]:
    """Read the heartbeats of the last minute in a queue; what is no heartbeat is left out."""
    since_ms = client.clock.now_ms() - _SINCE_MS
    end = await queues.max_offset(queue)
    begin = max(await queues.search_offset(queue, since_ms), end - _MOST)
    if begin >= end:
        return []
    range_ = QueueRange(queue, begin, end)
    read = read_messages(
        client,
        range_,
        max_messages=1024,
        max_bytes=1024 * 1024,
        fail_on_data_loss=False,
        corrupt_body="raw",
    )
    found: list[HeartbeatSyncerData] = []
    async for messages in read:
        found += [beat for one in messages if (beat := _heartbeat(one, since_ms)) is not None]
    return found


def _heartbeat(message: MessageExt, since_ms: int) -> HeartbeatSyncerData | None:
    if message.store_timestamp_ms < since_ms:  # where all are older, a broker finds the last one
        return None
    try:
        return parse_proxy_heartbeat(message.body)
    except ProtocolError:
        return None
