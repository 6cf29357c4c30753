"""Check-backs: a broker asks what became of a half message nobody has decided.

Brokers ask any member of the producer group, once per interval and half message, and write the half message
anew each time. So a decision must name the newest place; a copy left behind is asked about although the
message was committed, and a second commit would store it twice. Copies are left behind too when a decision
and a check cross (a broker notes decisions up to 3 s late), and by a send that was tried again.
Source of the rules: DefaultMQProducerImpl.checkTransactionState, ClientRemotingProcessor (Java client);
TransactionalMessageServiceImpl (broker). Ours: while a message is being decided here, the listener is not
asked a second time, and the newest place is kept for the decision; copies of what was decided here are
rolled back without asking it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from rmqtools.config import ProducerConfig
from rmqtools.engine.client import ClientCore
from rmqtools.engine.end_transaction import Decision, HalfPlace, end_transaction
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_PRODUCER_GROUP
from rmqtools.model.names import without_this_namespace
from rmqtools.model.transaction import LocalTransactionState
from rmqtools.protocol.command import RemotingCommand
from rmqtools.protocol.headers import CheckTransactionStateRequestHeader, decode_header
from rmqtools.protocol.messages import decode_message

log = get_logger(__name__)

CheckLocalTransaction = Callable[[MessageExt], Awaitable[LocalTransactionState]]

_MAX_ENDED = 10_000  # decided messages that are remembered
_CLOSE_GRACE = 5.0  # seconds that checks under way are given when the producer closes


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
        self._tasks: set[asyncio.Task[None]] = set()
        self._free = asyncio.Semaphore(config.check_thread_pool_max_size)
        self._closed = False
        client.remoting.on_request(RequestCode.CHECK_TRANSACTION_STATE, self._on_check)

    @contextmanager
    def executing(self, msg_id: str) -> Iterator[dict[str, HalfPlace]]:
        """While a local transaction runs, its check-backs wait here: the last place each broker named."""
        asked: dict[str, HalfPlace] = {}
        self._executing[msg_id] = asked
        try:
            yield asked
        finally:
            del self._executing[msg_id]

    async def end(self, place: HalfPlace, decision: Decision) -> str | None:
        """Tell the broker the decision, once; why it may not have taken it, None if it has."""
        error = await end_transaction(
            self._client.remoting, self._group, place, decision, timeout=self._config.send_timeout
        )
        if error is None and decision.is_final:
            self._ended[place.msg_id] = None
            if len(self._ended) > _MAX_ENDED:
                self._ended.popitem(last=False)
        return error

    async def close(self) -> None:
        """Take no more checks; those under way have some seconds to end, then their brokers ask again."""
        self._closed = True
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=_CLOSE_GRACE)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        if late:
            log.warning("transaction_checks_dropped", group=self._group, count=len(late))

    async def _on_check(self, command: RemotingCommand, addr: str) -> None:
        header = decode_header(CheckTransactionStateRequestHeader, command.ext_fields)
        message = decode_message(command.body)
        if self._closed or message.properties.get(PROPERTY_PRODUCER_GROUP) != self._group:
            return  # the broker asks somebody else next time
        place = _place_of(header, message, addr)
        if (asked := self._executing.get(place.msg_id)) is not None:
            asked[addr] = place
        elif (key := (place.msg_id, addr)) in self._checking:
            self._checking[key] = place
        elif len(self._tasks) < self._config.check_request_hold_max:
            self._checking[key] = place
            self._start(message, key)
        else:
            log.warning("transaction_check_refused", group=self._group, held=len(self._tasks))

    def _start(self, message: MessageExt, key: tuple[str, str]) -> None:
        topic = without_this_namespace(message.topic, self._config.namespace)
        task = asyncio.create_task(self._decide(message.with_topic(topic), key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _decide(self, message: MessageExt, key: tuple[str, str]) -> None:
        try:
            if message.msg_id in self._ended:
                decision = Decision(LocalTransactionState.ROLLBACK_MESSAGE)
            else:
                async with self._free:
                    decision = await decide(self._check(message), message.msg_id)
            await self.end(self._checking[key], decision)
        finally:
            del self._checking[key]


async def decide(asked: Awaitable[object], msg_id: str) -> Decision:
    """The listener's decision; one that raises, or gives no state, is logged and leaves it unknown."""
    try:
        state = await asked
        if not isinstance(state, LocalTransactionState):
            raise TypeError(f"the transaction listener returned {state!r}: want a LocalTransactionState")
    except Exception as error:  # a user's callback: whatever it does, its broker asks again
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
