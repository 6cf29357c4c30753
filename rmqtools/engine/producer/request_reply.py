"""Requests sent as messages, and their replies.

The requester puts its client id and a correlation id on the message. Its consumer sends a reply, which a
broker pushes to the client with that id; the correlation id identifies the request.
Source of the rules: DefaultMQProducerImpl.request, ClientRemotingProcessor.receiveReplyMessage (Java client).
Ours: all brokers of the topic's cluster get heartbeats, even those without a queue of the topic, since a
reply may be sent through any of them.
"""

import asyncio
import math
import uuid
from collections.abc import Awaitable, Callable, Mapping

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.send_heartbeats import Announcer
from rmqtools.errors import ClientStateError, ProtocolError, RemotingTimeoutError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.message_const import (
    PROPERTY_CORRELATION_ID,
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_MESSAGE_TTL,
    PROPERTY_REPLY_MESSAGE_ARRIVE_TIME,
)
from rmqtools.model.names import without_this_namespace
from rmqtools.policy.reply import reply_topic
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import ReplyMessageRequestHeader
from rmqtools.protocol.messages.corrupt_message import corrupt_message
from rmqtools.protocol.messages.properties import parse_properties
from rmqtools.protocol.messages.stored import decompressed
from rmqtools.protocol.wire.command import RemotingCommand, response

log = get_logger(__name__)

PlaceRequest = Callable[[Mapping[str, str], float], Awaitable[object]]

_LOG_INTERVAL = 60.0  # seconds, at least, between two log events about replies that nobody awaits
_ANNOUNCE_SHARE = 0.25  # share of a request's time to wait for brokers' answers to heartbeats, or for a route
_PAUSE_AFTER_FAILURE = 5.0  # seconds until the brokers of a cluster are looked up again


class RequestReply:
    """The requests of one producer that wait for their replies."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client
        self._announcer = Announcer(client)
        self._waiting: dict[str, asyncio.Future[MessageExt]] = {}
        self._look_up_at: dict[str, float] = {}  # by cluster; infinite: its brokers are known
        self._not_awaited = 0  # replies since the last log event about them
        self._log_at = client.clock.monotonic()
        client.remoting.on_request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, self._on_reply)

    async def request(
        self, message: Message, place: PlaceRequest, timeout: float, deadline: float
    ) -> MessageExt:
        """Send ``message`` by ``place(system_properties, timeout)`` and wait for its reply.

        A reply counts even if the send itself was never acknowledged. ``timeout`` is for all of the request,
        which ends at ``deadline``.

        Raises:
            RemotingTimeoutError: no reply in time.
            ClientStateError: the producer was closed meanwhile.
        """
        now = self._client.clock.monotonic
        correlation_id = str(uuid.uuid4())
        await self._make_known(message.topic, timeout * _ANNOUNCE_SHARE)
        self._client.check_started()  # otherwise it was closed meanwhile, and no reply can come
        properties = {
            PROPERTY_CORRELATION_ID: correlation_id,
            PROPERTY_MESSAGE_REPLY_TO_CLIENT: self._client.client_id,
            PROPERTY_MESSAGE_TTL: str(round(timeout * 1000)),
        }
        reply: asyncio.Future[MessageExt] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = reply
        placing = asyncio.ensure_future(place(properties, deadline - now()))
        try:
            await asyncio.wait((reply, placing), timeout=deadline - now(), return_when="FIRST_COMPLETED")
            if not reply.done() and placing.done():
                placing.result()
                await asyncio.wait({reply}, timeout=max(0.0, deadline - now()))
            if not reply.done():
                raise RemotingTimeoutError(
                    f"no reply to request {correlation_id} to topic {message.topic!r} within {timeout:.3f} s"
                )
            return reply.result()
        finally:
            del self._waiting[correlation_id]
            placing.cancel()
            await asyncio.gather(placing, return_exceptions=True)

    async def close(self) -> None:
        """Fail the waiting requests, since no reply can come."""
        for correlation_id, reply in self._waiting.items():
            if not reply.done():
                text = f"the producer was closed before the reply to request {correlation_id} came"
                reply.set_exception(ClientStateError(text))
        await self._announcer.close()

    async def _make_known(self, topic: str, timeout: float) -> None:
        """Find the brokers that may forward the reply, and send them heartbeats."""
        route, now = self._client.routes.tables.routes[topic], self._client.clock.monotonic()
        for cluster in {broker.cluster for broker in route.broker_datas}:
            if now >= self._look_up_at.get(cluster, now):
                await self._look_up(cluster, timeout)
        await self._announcer.announce(timeout)

    async def _look_up(self, cluster: str, timeout: float) -> None:
        """Find the brokers of a cluster. Requests at the same time share the look-up, and all wait for it."""
        try:
            async with asyncio.timeout(timeout):
                await self._client.routes.refresh(reply_topic(cluster))
        except (RocketMQError, TimeoutError) as error:
            self._look_up_at[cluster] = self._client.clock.monotonic() + _PAUSE_AFTER_FAILURE
            log.info("reply_route_unknown", cluster=cluster, reason=str(error) or "no answer in time")
        else:
            self._look_up_at[cluster] = math.inf

    async def _on_reply(self, command: RemotingCommand, addr: str) -> RemotingCommand:
        header = decode_header(ReplyMessageRequestHeader, command.ext_fields)
        properties = parse_properties(header.properties)
        correlation_id = properties.get(PROPERTY_CORRELATION_ID, "")
        reply = self._waiting.get(correlation_id)
        if reply is None or reply.done():  # nothing of it is decoded: anybody can send any number
            self._note_not_awaited(correlation_id, header.born_host)
        else:
            reply.set_result(self._decode(header, properties, command.body))
        return response(ResponseCode.SUCCESS, command.opaque)

    def _note_not_awaited(self, correlation_id: str, born_host: str) -> None:
        """Count a reply that nobody waits for; log the number once a minute."""
        self._not_awaited += 1
        now = self._client.clock.monotonic()
        if now >= self._log_at:
            count, self._not_awaited, self._log_at = self._not_awaited, 0, now + _LOG_INTERVAL
            log.warning("reply_not_awaited", count=count, correlation_id=correlation_id, born_host=born_host)

    def _decode(
        self, header: ReplyMessageRequestHeader, properties: dict[str, str], body: bytes
    ) -> MessageExt:
        """Return the reply with its original body; reading a body that cannot be decompressed raises."""
        properties[PROPERTY_REPLY_MESSAGE_ARRIVE_TIME] = str(self._client.clock.now_ms())
        message = MessageExt(
            topic=without_this_namespace(header.topic, self._client.config.namespace),
            queue_id=header.queue_id,
            queue_offset=0,
            commit_log_offset=0,
            body=body,
            properties=properties,
            flag=header.flag,
            sys_flag=header.sys_flag,
            born_timestamp_ms=header.born_timestamp,
            born_host=header.born_host,
            store_timestamp_ms=header.store_timestamp,
            store_host=header.store_host,
            reconsume_times=header.reconsume_times or 0,
        )
        try:
            return decompressed(message, self._client.config.max_decompressed_bytes)
        except ProtocolError as error:
            return corrupt_message(message, error)
