"""A transaction producer: half message, local transaction, decision, check-backs.

Source of the rules: DefaultMQProducerImpl.sendMessageInTransaction (Java client). Ours: a delay is refused
instead of dropped, and brokers that hold half messages get a heartbeat at once.

- Brokers find transaction members by their heartbeats. Half messages are on the brokers in the route of
  RMQ_SYS_TRANS_HALF_TOPIC, so a member announces itself there and can be asked before it has sent anything.
- A proxy 5.5.0 notes a producer group when a half message comes, and forgets it at its next look if no member
  of the group is online. Then no broker ever asks. So a producer sends the proxy its heartbeat before the
  half message.

The half message goes through the producer's ``Sender``. Then the listener runs, and ``end_transaction`` sends
its decision. ``check_back`` answers the check-backs of brokers.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import fields
from typing import Any, Protocol

from rmqtools.config import ProducerConfig
from rmqtools.config.client import check_config
from rmqtools.engine.blocking_form import START_NOTE, blocking
from rmqtools.engine.connection.background import Closing
from rmqtools.engine.connection.send_heartbeats import Announcer
from rmqtools.engine.producer.check_back import CheckBack, decide
from rmqtools.engine.producer.end_transaction import Decision, HalfPlace
from rmqtools.engine.producer.producer import Producer
from rmqtools.engine.user_functions import check_transaction_listener
from rmqtools.errors import ConfigError, MessageRejectedError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.message_const import PROPERTY_PRODUCER_GROUP, PROPERTY_TRANSACTION_PREPARED
from rmqtools.model.names import DEFAULT_PRODUCER_GROUP, HALF_TOPIC
from rmqtools.model.reply import ReplyMessage
from rmqtools.model.result import SendResult, SendStatus
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.model.transaction import HalfMessage, LocalTransactionState, TransactionSendResult
from rmqtools.protocol.messages.message_id import parse_offset_msg_id

log = get_logger(__name__)

ExecuteLocalTransaction = Callable[[HalfMessage, Any], Awaitable[LocalTransactionState]]

_ANNOUNCE_INTERVAL = 1.0  # seconds
_ANNOUNCE_PATIENCE = 1.0  # seconds that a half message waits for a proxy's answer to a heartbeat
_PROXY_WAITS = "a proxy takes no decision before a broker asks for it: it gets it then, in a minute or so"


class TransactionListener(Protocol):
    """The application's part of a transaction: coroutines, or plain functions that do not block."""

    def execute_local_transaction(
        self, message: HalfMessage, arg: Any
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Run the local transaction and return its state. The half message is already stored.

        Save ``message.transaction_id`` in the same transaction: a check-back names that id. An exception
        leaves the state unknown, and the broker asks later.
        """

    def check_local_transaction(
        self, message: MessageExt
    ) -> LocalTransactionState | Awaitable[LocalTransactionState]:
        """Return the state of the transaction ``message.msg_id``, started by any member of the group.

        Return ROLLBACK_MESSAGE if none was ever started. After an exception or UNKNOWN the broker asks again;
        after 15 times (``transactionCheckMax``) it discards the message.
        """


TransactionListener.__module__ = "rmqtools.aio"


class TransactionProducer(Producer):
    """A :class:`Producer` that also sends in transactions and answers check-backs of its group.

    Brokers ask any connected member of the group, so the listener of every member must know the state of
    the transactions of all members.

    Raises:
        ConfigError: by the constructor, for settings that are not valid and for the default group.
        TypeError: by the constructor, for a listener without one of the methods.
    """

    __module__ = "rmqtools.aio"

    def __init__(self, config: ProducerConfig, listener: TransactionListener) -> None:
        check_config(type(self).__name__, config, ProducerConfig)
        if config.group == DEFAULT_PRODUCER_GROUP:
            raise ConfigError(
                f"group={config.group!r}: brokers ask any member of the group for the outcome of a "
                "transaction, so give the group a name of its own"
            )
        check_transaction_listener(listener, awaited=True)
        super().__init__(config)
        self._listener = listener
        self._check_back = CheckBack(self._client, self._group, config, self._check_local_transaction)
        self._announcer = Announcer(self._client)
        self._closing = Closing(
            f"producer {self._client.client_id}",
            self._check_back.close,
            self._announcer.close,
            *self._closing_steps(),
        )

    @blocking("base", note=START_NOTE)
    async def start(self) -> None:
        """Start the background tasks, among them the search for the brokers that hold half messages."""
        await super().start()
        background = self._client.background
        background.spawn_loop("half_topic_lookup", self._find_half_topic)
        background.spawn_loop("announce", lambda: self._announcer.announce_forever(_ANNOUNCE_INTERVAL))

    @blocking("base", note="The local transaction runs on the calling thread.")
    async def send_message_in_transaction(
        self, message: Message, arg: Any = None, *, timeout: float | None = None
    ) -> TransactionSendResult:
        """Send a half message, run the local transaction, and send its decision to the broker.

        Args:
            message: delivered if the local transaction commits; must not have a delay.
            arg: passed to the listener.
            timeout: seconds for all attempts to store the half message; None: ``send_timeout``. The local
                transaction has no limit; the broker then has ``send_timeout`` to confirm the decision.

        Returns:
            The decision, and whether the broker accepted it. If the half message was not flushed or
            replicated as the broker requires, it is rolled back and the local transaction does not run.

        Raises:
            MessageRejectedError, TopicNotFoundError, PermissionDeniedError, RemotingConnectError: nothing was
                sent.
            UnknownOutcomeError: the half message may be stored. The local transaction did not run; the broker
                may ask the group about it.
            SendError: the half message is not stored; the local transaction did not run.

        Source of the rule: TransactionMQProducer.sendMessageInTransaction (Java client).
        """
        return await self._send_in_transaction(message, arg, self._execute_local_transaction, timeout)

    async def _send_in_transaction(
        self, message: Message, arg: Any, execute: ExecuteLocalTransaction, timeout: float | None
    ) -> TransactionSendResult:
        self._check_in_transaction(message, timeout)
        if self._observer is None:
            return await self._in_transaction(message, arg, execute, timeout)
        with self._observer.sending([message], self._identity, in_transaction=True) as sending:
            (changed,) = sending.messages
            result = await self._in_transaction(changed, arg, execute, timeout)
            sending.stored([result])
            return result

    async def _in_transaction(
        self, message: Message, arg: Any, execute: ExecuteLocalTransaction, timeout: float | None
    ) -> TransactionSendResult:
        properties = {PROPERTY_TRANSACTION_PREPARED: "true", PROPERTY_PRODUCER_GROUP: self._group}
        outgoing = self._encoder.encode(
            message, system_properties=properties, sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE
        )
        (msg_id,) = outgoing.msg_ids
        now = self._client.clock.monotonic
        deadline = now() + (self._config.send_timeout if timeout is None else timeout)
        await self._sender.find(message.topic, deadline)
        if self._client.endpoint.is_proxy:
            await self._send_heartbeat_to_proxy(deadline - now())
        with self._check_back.executing(msg_id) as asked:
            left = max(0.0, deadline - now())
            stored = await self._sender.place_one(outgoing, message=message, timeout=left)
            decision = await self._execute(message, arg, stored, execute)
            end_error = await self._end(message, stored, decision, asked)
        result = _result(stored, decision, end_error)
        self._traced([message], [result])
        return result

    async def _send_heartbeat_to_proxy(self, timeout: float) -> None:
        """Make a proxy know the group before its half message: else it may never let brokers ask for it.

        It takes note of the group when the half message comes, and drops that note at its next look if no
        member is online (ClusterTransactionService.scanProducerHeartBeat 5.5.0). A silent one takes at most
        half of ``timeout``.
        """
        await self._announcer.announce(min(_ANNOUNCE_PATIENCE, max(0.0, timeout / 2)))

    def _check_in_transaction(self, message: Message, timeout: float | None) -> None:
        self._check(message, timeout)
        if message.is_delayed:
            raise MessageRejectedError("a message in a transaction cannot have a delay")
        if message.priority is not None:
            raise MessageRejectedError("a message in a transaction cannot have a priority")
        if isinstance(message, ReplyMessage):
            raise MessageRejectedError("a reply cannot be sent in a transaction: use send")

    async def _execute_local_transaction(self, message: HalfMessage, arg: Any) -> LocalTransactionState:
        return await _awaited(self._listener.execute_local_transaction(message, arg))

    async def _check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return await _awaited(self._listener.check_local_transaction(message))

    async def _execute(
        self, message: Message, arg: Any, stored: SendResult, execute: ExecuteLocalTransaction
    ) -> Decision:
        """Run the local transaction, unless the half message may be lost with its broker."""
        if stored.status is not SendStatus.SEND_OK:
            return Decision(LocalTransactionState.ROLLBACK_MESSAGE)
        given = {field.name: getattr(message, field.name) for field in fields(Message)}
        return await decide(execute(HalfMessage(**given, transaction_id=stored.msg_id), arg), stored.msg_id)

    async def _end(
        self, message: Message, stored: SendResult, decision: Decision, asked: dict[str, HalfPlace]
    ) -> str | None:
        """Send the decision to the broker; if it has checked meanwhile, in answer to its last check."""
        if self._client.endpoint.is_proxy and not asked:
            if decision.is_final:
                self._check_back.keep(stored.msg_id, decision)
            return _PROXY_WAITS if decision.is_final else None
        broker_name = self._client.routes.broker_name(stored.queue)
        try:
            addr = self._client.routes.master_addr(broker_name)
            place = asked.get(addr) or self._first_place(message, stored, broker_name, addr)
        except RocketMQError as error:
            log.warning("transaction_not_ended", msg_id=stored.msg_id, reason=str(error))
            return str(error)
        return await self._check_back.end(place, decision)

    def _first_place(self, message: Message, stored: SendResult, broker_name: str, addr: str) -> HalfPlace:
        """Return the place that the answer to a half message names.

        Raises:
            ProtocolError: the answer has no offset id that can be read.
        """
        _, commit_log_offset = parse_offset_msg_id(stored.offset_msg_id)
        return HalfPlace(
            addr=addr,
            broker_name=broker_name,
            topic=self._client.wire_topic(message.topic),
            tran_state_table_offset=stored.queue_offset,
            commit_log_offset=commit_log_offset,
            msg_id=stored.msg_id,
            transaction_id=stored.transaction_id,
        )

    async def _find_half_topic(self) -> None:
        """Find the brokers that hold half messages, so that they can ask this member at any time."""
        while HALF_TOPIC not in self._client.routes.tables.routes:
            try:
                await self._client.routes.refresh(HALF_TOPIC)
            except RocketMQError as error:
                log.info("half_topic_unknown", reason=str(error))
                await asyncio.sleep(_ANNOUNCE_INTERVAL)
        await self._announcer.announce(_ANNOUNCE_INTERVAL)


async def _awaited(answer: LocalTransactionState | Awaitable[LocalTransactionState]) -> LocalTransactionState:
    return await answer if inspect.isawaitable(answer) else answer


def _result(stored: SendResult, decision: Decision, end_error: str | None) -> TransactionSendResult:
    given = {field.name: getattr(stored, field.name) for field in fields(SendResult)}
    return TransactionSendResult(
        **given,
        local_transaction_state=decision.state,
        local_transaction_error=decision.error,
        end_transaction_error=end_error,
    )
