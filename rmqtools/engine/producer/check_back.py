"""Check-backs: a broker asks for the outcome of a half message without a decision.

Brokers ask any member of the producer group, once per interval and half message, and write the half message
again each time. So a decision must name the newest copy: brokers ask about older copies even after the
commit, and a second commit would store the message twice. Older copies also remain when a decision and a
check cross (a broker records decisions up to 3 s late), and after a repeated send.
Source of the rules: DefaultMQProducerImpl.checkTransactionState, ClientRemotingProcessor (Java client);
TransactionalMessageServiceImpl (broker). Ours: while this member decides about a message, the listener is not
asked again, and the newest copy is kept for the decision; copies of messages decided here are rolled back
without asking the listener. A proxy answers SUCCESS to a decision and drops it, unless a broker has checked
the message (TransactionActivity, ClusterTransactionService 5.5.0): there decisions are kept until it checks.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from rmqtools.config import ProducerConfig
from rmqtools.engine.connection.background import Background
from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.producer.end_transaction import Decision, HalfPlace, end_transaction
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_PRODUCER_GROUP
from rmqtools.model.names import without_this_namespace
from rmqtools.model.transaction import LocalTransactionState
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import CheckTransactionStateRequestHeader
from rmqtools.protocol.messages.found import decode_single
from rmqtools.protocol.wire.command import RemotingCommand

log = get_logger(__name__)

CheckLocalTransaction = Callable[[MessageExt], Awaitable[LocalTransactionState]]

_MAX_ENDED = 10_000  # decided messages to remember
_CLOSE_GRACE = 5.0  # seconds for running checks when the producer closes


class CheckBack:
    """Answers the check-backs that reach one member of a producer group."""

    def __init__(
        self, client: ClientCore, group: str, config: ProducerConfig, check: CheckLocalTransaction
    ) -> None:
        self._client = client
        self._group = group
        self._config = config
        self._check = check
        self._executing: dict[str, dict[str, HalfPlace]] = {}
        self._checking: dict[tuple[str, str], HalfPlace] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._kept: OrderedDict[str, Decision] = OrderedDict()  # for brokers behind a proxy
        self._checks = Background()
        self._free = asyncio.Semaphore(config.check_thread_pool_max_size)
        self._closed = False
        client.remoting.on_request(RequestCode.CHECK_TRANSACTION_STATE, self._on_check)

    @contextmanager
    def executing(self, msg_id: str) -> Iterator[dict[str, HalfPlace]]:
        """While a local transaction runs, collect its check-backs: the last place that each broker named."""
        asked: dict[str, HalfPlace] = {}
        self._executing[msg_id] = asked
        try:
            yield asked
        finally:
            del self._executing[msg_id]

    async def end(self, place: HalfPlace, decision: Decision) -> str | None:
        """Send the decision to the broker, once; return why it may not have accepted it, None if it has."""
        error = await end_transaction(
            self._client.remoting, self._group, place, decision, timeout=self._config.send_timeout
        )
        if error is None and decision.is_final:
            self._ended[place.msg_id] = None
            if len(self._ended) > _MAX_ENDED:
                self._ended.popitem(last=False)
        return error

    def keep(self, msg_id: str, decision: Decision) -> None:
        """Give the decision when a broker asks for it."""
        self._kept[msg_id] = decision
        if len(self._kept) > _MAX_ENDED:
            self._kept.popitem(last=False)

    async def close(self) -> None:
        """Accept no more checks. Running ones have some seconds to end; brokers ask again for the others."""
        self._closed = True
        if self._kept:
            log.warning("transaction_decisions_not_asked_for", group=self._group, count=len(self._kept))
        try:
            async with asyncio.timeout(_CLOSE_GRACE):
                await self._checks.join()
        except TimeoutError:
            log.warning("transaction_checks_dropped", group=self._group, count=len(self._checks))
            await self._checks.stop()

    async def _on_check(self, command: RemotingCommand, addr: str) -> None:
        header = decode_header(CheckTransactionStateRequestHeader, command.ext_fields)
        message = decode_single(command.body, max_body_bytes=self._config.max_decompressed_bytes)
        if self._closed or message.properties.get(PROPERTY_PRODUCER_GROUP) != self._group:
            return  # the broker will ask another member
        place = _place_of(header, message, addr)
        if (asked := self._executing.get(place.msg_id)) is not None:
            asked[addr] = place
        elif (key := (place.msg_id, addr)) in self._checking:
            self._checking[key] = place
        elif len(self._checks) < self._config.check_request_hold_max:
            self._checking[key] = place
            self._start(message, key)
        else:
            log.warning("transaction_check_refused", group=self._group, held=len(self._checks))

    def _start(self, message: MessageExt, key: tuple[str, str]) -> None:
        topic = without_this_namespace(message.topic, self._config.namespace)
        self._checks.spawn(f"check {message.msg_id}", self._decide(message.with_topic(topic), key))

    async def _decide(self, message: MessageExt, key: tuple[str, str]) -> None:
        try:
            if message.msg_id in self._ended:
                decision = Decision(LocalTransactionState.ROLLBACK_MESSAGE)
            elif (kept := self._kept.get(message.msg_id)) is not None:
                decision = kept
            else:
                async with self._free:
                    decision = await decide(self._check(message), message.msg_id)
            if await self.end(self._checking[key], decision) is None:
                self._kept.pop(message.msg_id, None)
        finally:
            del self._checking[key]


async def decide(asked: Awaitable[object], msg_id: str) -> Decision:
    """Ask for the decision; an exception or a wrong result is logged, and means UNKNOWN."""
    try:
        state = await asked
        if not isinstance(state, LocalTransactionState):
            raise TypeError(f"the transaction listener returned {state!r}: want a LocalTransactionState")
    except Exception as error:  # a user's callback: the broker will ask again
        log.error("transaction_listener_failed", msg_id=msg_id, reason=repr(error), exc_info=error)
        return Decision(LocalTransactionState.UNKNOWN, repr(error))
    return Decision(state)


def _place_of(header: CheckTransactionStateRequestHeader, message: MessageExt, addr: str) -> HalfPlace:
    return HalfPlace(
        addr=addr,
        broker_name=header.bname,
        topic=header.topic,
        tran_state_table_offset=header.tran_state_table_offset,
        commit_log_offset=header.commit_log_offset,
        msg_id=message.msg_id,
        transaction_id=header.transaction_id,
        from_transaction_check=True,
    )
