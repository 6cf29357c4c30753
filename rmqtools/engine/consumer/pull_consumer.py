"""A pull consumer: fetches held queues in the background; ``poll`` hands out fetched messages.

Source of the rules: DefaultLitePullConsumerImpl, AssignedMessageQueue, RebalanceLitePullImpl (Java client).
Ours: a seek ends the running long poll at once; a paused queue hands out no messages, not even those fetched
before; pulls carry no offsets; closing commits what was handed out; unassigned queues and queues of
unsubscribed topics are given up at once. One file because it is one class.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TypeVar

from rmqtools.config.client import check_config
from rmqtools.config.consumer import PullConsumerConfig
from rmqtools.config.text import is_within
from rmqtools.engine.admin.group_offsets import fetch_consumer_offset
from rmqtools.engine.admin.masters import Masters
from rmqtools.engine.admin.queues import QueueAdmin
from rmqtools.engine.asynchronous import ItemsUntilNone
from rmqtools.engine.blocking_form import INTERRUPT_NOTE, START_NOTE, blocking
from rmqtools.engine.connection.connected import Connected
from rmqtools.engine.connection.refusals import ErrorListener
from rmqtools.engine.consumer.fetch_policy import PollFetch
from rmqtools.engine.consumer.hand_out import HandOut
from rmqtools.engine.consumer.lifecycle import Lifecycle
from rmqtools.engine.consumer.listeners import MessageQueueListener, report_queues
from rmqtools.engine.consumer.operator_requests import OperatorRequests
from rmqtools.engine.consumer.puller import Puller
from rmqtools.engine.consumer.start_offsets import StartOffsets
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.ownership import Ownership
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.engine.user_functions import check_error_listener, check_queue_listener
from rmqtools.errors import BrokerError, ClientStateError, ConfigError, DataLossError
from rmqtools.model.group import ConsumeType
from rmqtools.model.message import MessageExt
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.strategy import AllocateMessageQueueStrategy
from rmqtools.policy.allocate.strategy_table import StrategyName, strategy_named

T = TypeVar("T")

_HOLD_PATIENCE = 10.0  # seconds to wait for a newly assigned queue


class PullConsumer(Connected):
    """A member of a consumer group that polls its messages, like Java's DefaultLitePullConsumer.

    Queues are shared among the members (``subscribe``) or fixed (``assign``). Messages are fetched in the
    background, up to ``pull_threshold_for_queue`` per queue and ``pull_threshold_bytes_for_all`` together,
    and returned in the order of their queue.

    With ``auto_commit``, ``poll`` commits the messages of earlier polls every ``auto_commit_interval``
    seconds, and closing commits everything returned. If a block is left by an exception, or a queue goes to
    another member, the messages of the last poll are not committed and will be returned again.
    """

    __module__ = "rmqtools.aio"

    @blocking("base")
    def __init__(
        self,
        config: PullConsumerConfig,
        *,
        strategy: AllocateMessageQueueStrategy | StrategyName | None = None,
        message_queue_listener: MessageQueueListener | None = None,
        error_listener: ErrorListener | None = None,
    ) -> None:
        """Make a consumer; nothing is sent before it is started.

        Args:
            config: group and settings.
            strategy: how members share the queues, or the name of a built-in strategy that needs no options
                (``"AVG_BY_CIRCLE"``); None: AVG.
            message_queue_listener: called as ``(topic, all_queues, own_queues)`` on the loop when this
                member's queues of a topic have changed; must not block.
            error_listener: called with an error on the loop when a broker begins to refuse this member for
                lack of permission; must not block. ``poll`` raises it too, once, when it has no message. If
                every broker refuses, the start raises.

        Raises:
            ConfigError, MessageRejectedError: a setting or the group name is not valid.
        """
        check_config(type(self).__name__, config, PullConsumerConfig)
        check_queue_listener(message_queue_listener)
        check_error_listener(error_listener)
        self._config = config
        self._keeps_last_poll = False  # closing does not commit what the last poll handed out
        self._member = member = Member(config, strategy_named(strategy), ConsumeType.CONSUME_ACTIVELY)
        self._client = member.client
        self._names = member.names
        self._held = member.held
        self._offsets = member.offsets
        self._queues = QueueAdmin(self._client)
        self._hand_out = HandOut(member.names.plain_message)
        self._puller = Puller(member, PollFetch(member, config, self._hand_out))
        self._ownership = Ownership(
            member,
            start_offset=StartOffsets(member, self._queues, stores=config.auto_commit).find,
            report_queues=message_queue_listener and partial(report_queues, message_queue_listener),
        )
        self._held_more = asyncio.Event()
        self._held.on_hold(self._puller.start)
        self._held.on_hold(self._hand_out.held)
        self._held.on_hold(lambda _: self._held_more.set())
        self._held.on_move(self._hand_out.replace)
        self._held.on_leave(self._note_leaving)
        self._client.refusals.listen(lambda _: self._hand_out.wake())
        self._next_commit = 0.0
        self._closing = False
        self._life = Lifecycle(
            self._client,
            self._join,
            self._ownership.stop,
            self._puller.close,
            self._note_all,
            self._held.close,
            member.membership.leave,
        )
        if error_listener is not None:
            self._client.refusals.listen(error_listener)

    @property
    def client_id(self) -> str:
        """The name of this member at brokers: ``ip@instance``."""
        return self._client.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues this member holds now, sorted."""
        return self._member.held_queues()

    @blocking("direct")
    def assignment(self) -> list[MessageQueue]:
        """Return the same as :attr:`queues`."""
        return self._member.held_queues()

    # lifecycle

    @blocking("base", note=START_NOTE)
    async def start(self) -> None:
        """Join the group. Returns when this member holds its share, after the first rebalance, or after 10 s.

        A message that is sent after that is not missed, wherever the group begins.

        Raises:
            UnsupportedError: a proxy, or a broker too old, for pins or conditions.
            BrokerError: a broker refuses an SQL92 condition.
            RemotingError: no name server answers.
        """
        await self._life.start()

    @blocking("base", note=INTERRUPT_NOTE)
    async def close(self) -> None:
        """Leave the group; with ``auto_commit``, commit what was handed out. Running polls return.

        May be called at any time, in any state, also after an interrupted close.
        """
        self._closing = True
        self._hand_out.wake()
        await self._life.close()

    # subscriptions and assignment

    @blocking("call")
    def subscribe(self, topic: str, *, tags: str = "*", sql: str | None = None) -> None:
        """Read a topic's queues together with the other members of the group; before or after the start.

        Args:
            topic: one topic; call it again for more.
            tags: the tags wanted, ``"a || b"``; ``*`` is everything.
            sql: a condition on properties (SQL92) instead of tags; needs ``enablePropertyFilter`` on brokers.
                Topics with the queue type BatchCQ are refused at the start: brokers evaluate a condition for
                a stored batch as a whole.

        Raises:
            ClientStateError: ``assign`` was called before.
            ConfigError, MessageRejectedError: a name or an expression is not valid.
        """
        if self._member.subscriptions.assigned is not None:
            raise ClientStateError(
                f"topic {topic!r}: queues are assigned; subscribe and assign exclude one another: "
                "use a second consumer"
            )
        self._member.subscriptions.want(topic, tags=tags, sql=sql)

    @blocking("call")
    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic at once."""
        self._hand_out.take_back()
        wire_topic = self._names.wire_topic(topic)
        self._held.begin_to_give_up([held for held in self._held.working() if held.queue.topic == wire_topic])
        self._member.subscriptions.want_no_more(wire_topic)

    @blocking("call")
    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Read exactly these queues, also if other members read them; before or after the start.

        They replace the queues of an earlier call; queues in both continue where they are. Tags are not
        filtered. Members that subscribe would count this one in their shares: use a separate group.

        Raises:
            ClientStateError: ``subscribe`` was called before.
            ConfigError: these are no queues.
        """
        if self._member.subscriptions:
            raise ClientStateError(
                f"topics {sorted(self._member.subscriptions)} are subscribed; subscribe and assign exclude "
                "one another: use a second consumer"
            )
        _check_queues(queues)
        self._hand_out.take_back()
        wanted = set(map(self._names.wire_queue, queues))
        self._held.keeps_offsets = True
        self._held.begin_to_give_up([held for held in self._held.working() if held.queue not in wanted])
        self._member.subscriptions.assign(wanted)

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """Return all queues of a topic that can be read, sorted.

        Raises:
            TopicNotFoundError, PermissionDeniedError: there are none.
        """
        queues = await self._queues.fetch_subscribe_queues(self._names.wire_topic(topic))
        return [self._names.plain_queue(queue) for queue in queues]

    # messages

    @blocking("by_hand")
    async def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[MessageExt]:
        """Wait for messages.

        Args:
            timeout: seconds until an empty list is returned; 0: only messages fetched already. None:
                ``poll_timeout``.
            max_messages: the most messages to return; None: ``poll_batch_size``.

        Raises:
            ClientStateError: not started, closed, or nothing is subscribed or assigned.
            ConfigError: an argument is too small.
            BrokerError: a broker has begun to refuse this member for lack of permission; raised once.
        """
        seconds, count = self._wanted(timeout, max_messages)
        began = self._client.clock.monotonic()
        messages = await self._poll(partial(self._hand_out.take, count), seconds)
        self._observe(messages, began)
        return messages

    def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Yield every message and wait for more, until the consumer is closed.

        Asking for the next message counts the previous one as consumed. After leaving the iteration, a new
        one continues without skipping a message; so does this one after a cancelled call.
        """
        return ItemsUntilNone(self._next)

    async def _next(self) -> MessageExt | None:
        """Return the next message of an iteration; None: the consumer is closed."""
        while not self._closing:
            if messages := await self._poll(partial(self._hand_out.take, 1), self._config.poll_timeout):
                return messages[0]
        return None

    async def _make_ready(self, count: int, seconds: float, *, ahead: int = 0) -> bool:
        """Make a portion ready in ``_hand_out.ready``; return False if there is none after ``seconds``.

        ``ahead``: messages of further portions, for calls that :attr:`_is_loop_needed` lets take them.
        """
        observed = self._client.observer is not None
        began = self._client.clock.monotonic()
        make = partial(self._hand_out.make_ready, count, ahead=0 if observed else ahead)
        is_ready = await self._poll(make, seconds)
        if observed and is_ready:
            self._observe(next(iter(self._hand_out.ready.values()), []), began)
        return is_ready

    @property
    def _is_loop_needed(self) -> bool:
        """True if the next poll must begin on the loop although a portion is ready. Safe on any thread."""
        return self._client.observer is not None or self._is_commit_due()

    async def _poll(self, find: Callable[[], T], seconds: float) -> T:
        """Begin a poll; return what ``find`` returns as soon as it is true, or its last result."""
        self._begin_poll()
        deadline = self._client.clock.monotonic() + seconds
        while not (found := find()) and not self._closing:
            self._raise_refusal()
            left = deadline - self._client.clock.monotonic()
            await self._hand_out.wait(max(left, 0))
            if left <= 0:
                break
        return found

    def _observe(self, messages: Sequence[MessageExt], began: float) -> None:
        if self._client.observer is not None and messages:
            waited = self._client.clock.monotonic() - began
            self._client.observer.received(messages, self._member.identity, seconds=waited)

    @blocking("call")
    def pause(self, queues: Collection[MessageQueue]) -> None:
        """Stop fetching and returning messages of these queues until :meth:`resume`. This member keeps them.

        Queues that this member does not hold are ignored.
        """
        self._hand_out.take_back()
        for held in self._find_all(queues):
            held.is_paused = True

    @blocking("call")
    def resume(self, queues: Collection[MessageQueue]) -> None:
        """End a :meth:`pause`."""
        for held in self._find_all(queues):
            held.is_paused = False
            held.wake()
            self._hand_out.arrived(held)

    # offsets

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at another offset of a queue. Messages fetched before are discarded.

        Raises:
            ClientStateError: this member does not hold the queue.
            DataLossError: the broker does not have that offset; one more than the last is allowed.
        """
        await self._find(queue)
        low, high = await asyncio.gather(self.min_offset(queue), self.max_offset(queue))
        if not low <= offset <= high:
            raise DataLossError(f"cannot seek to offset {offset} of {queue}: the broker has [{low}, {high})")
        await self._seek(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue at the first offset of a queue. Raises as :meth:`seek`."""
        await self._find(queue)
        await self._seek(queue, await self.min_offset(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue after the last message of a queue. Raises as :meth:`seek`."""
        await self._find(queue)
        await self._seek(queue, await self.max_offset(queue))

    async def seek_to_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Continue at the first message stored at or after a time. Raises as :meth:`seek`."""
        await self._find(queue)
        await self._seek(queue, await self.search_offset(queue, timestamp_ms))

    async def position(self, queue: MessageQueue) -> int:
        """Return the offset at which a queue continues: that of its next message, if known yet.

        It also moves past missing and filtered messages, so it shows when a range has been read to its end.

        Raises:
            ClientStateError: this member does not hold the queue.
        """
        return self._hand_out.position(await self._find(queue))

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Store consumer offsets and wait until the brokers have them.

        Args:
            offsets: the next offset to consume, by queue; None: every message returned counts as consumed.

        Raises:
            ClientStateError: this member does not hold a queue; nothing is sent.
            RocketMQError: an offset is not stored; others may be.
        """
        self._client.check_started()
        for queue, offset in (offsets or {}).items():
            await self._find(queue)
            if offset < 0:
                raise ConfigError(f"cannot commit offset {offset} of {queue}: want 0 or more")
        if offsets is None:
            found = {held.queue: self._hand_out.handed_out(held) for held in self._held.working()}
            await self._offsets.commit({queue: at for queue, at in found.items() if at is not None})
        else:
            await self._offsets.commit({self._names.wire_queue(queue): at for queue, at in offsets.items()})

    async def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's stored offset of any queue; None if it has none."""
        self._client.check_started()
        wire = self._names.wire_queue(queue)
        if self._config.is_broadcasting:
            return self._offsets.read_memory(wire)
        masters, group = Masters(self._client), self._member.group
        return await fetch_consumer_offset(masters, group, wire.topic, wire, or_slave=True)

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the first offset that a queue still has."""
        return await self._queues.min_offset(self._names.wire_queue(queue))

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the last offset of a queue plus one."""
        return await self._queues.max_offset(self._names.wire_queue(queue))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Return the offset of the first message stored at or after a time."""
        return await self._queues.search_offset(self._names.wire_queue(queue), timestamp_ms)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeps_last_poll = kind is not None
        await self.close()

    # internals

    async def _join(self) -> None:
        OperatorRequests(self._member).listen()
        await self._ownership.join()
        await self._ownership.settle()

    async def _find(self, queue: MessageQueue) -> ProcessQueue:
        """Return the held state of a queue; waits for one just assigned.

        Raises:
            ClientStateError: this member does not hold it.
        """
        self._client.check_started()
        wire, deadline = self._names.wire_queue(queue), self._client.clock.monotonic() + _HOLD_PATIENCE
        while (held := self._held.pulled.get(wire)) is None or held.is_dropped:
            left = deadline - self._client.clock.monotonic()
            if wire not in (self._member.subscriptions.assigned or ()) or left <= 0:
                raise ClientStateError(
                    f"{queue} is not held by {self._member.client_id} (now): it was never assigned, has gone "
                    "to another member, or its broker does not answer; see assignment()"
                )
            self._held_more.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._held_more.wait()
        return held

    def _raise_refusal(self) -> None:
        """Raise if a broker has begun to refuse this member since the last call."""
        if (error := self._client.refusals.take()) is not None:
            raise BrokerError(error.code, error.remark, error.addr) from error

    def _find_all(self, queues: Collection[MessageQueue]) -> list[ProcessQueue]:
        found = (self._held.pulled.get(self._names.wire_queue(queue)) for queue in queues)
        return [held for held in found if held is not None]

    def _begin_poll(self) -> None:
        self._client.check_started()
        if self._member.subscriptions.assigned is None and not self._member.subscriptions:
            raise ClientStateError(f"group {self._config.group!r} reads nothing: call subscribe or assign")
        self._hand_out.begin()
        if self._is_commit_due():
            self._next_commit = self._client.clock.monotonic() + self._config.auto_commit_interval
            self._note(self._held.working(), certain=True)
            self._client.spawn("auto_commit", self._offsets.persist(list(self._held.pulled)))

    def _is_commit_due(self) -> bool:
        return self._config.auto_commit and self._client.clock.monotonic() >= self._next_commit

    def _wanted(self, timeout: float | None, max_messages: int | None) -> tuple[float, int]:
        """Return the seconds and messages of a poll.

        Raises:
            ConfigError: a number is too small.
        """
        seconds = self._config.poll_timeout if timeout is None else timeout
        count = self._config.poll_batch_size if max_messages is None else max_messages
        if not (is_within(seconds, 0, math.inf) and is_within(count, 1, math.inf)):
            raise ConfigError(f"poll(timeout={timeout!r}, max_messages={max_messages!r}): want >= 0 and >= 1")
        return seconds, count

    def _note(self, queues: Iterable[ProcessQueue], *, certain: bool) -> None:
        """Note how far queues are consumed; ``certain``: leave out what the last poll handed out."""
        for held in queues:
            offset = self._hand_out.consumed(held) if certain else self._hand_out.handed_out(held)
            if offset is not None:
                self._offsets.update(held.queue, offset)

    def _note_leaving(self, held: ProcessQueue) -> None:
        """Note a queue's offset at its release. Uncommitted messages of the last poll come again."""
        if self._config.auto_commit:
            self._note([held], certain=True)
        self._hand_out.forget(held)

    async def _note_all(self) -> None:
        """On close, note everything handed out as consumed, unless the user left because of an error."""
        self._hand_out.take_back()
        for held in self._held.working():
            if self._config.auto_commit:
                self._note([held], certain=self._keeps_last_poll)
            self._hand_out.forget(held)

    async def _seek(self, queue: MessageQueue, offset: int) -> None:
        held = await self._find(queue)
        self._puller.stop(held)
        self._held.move(held, offset, note=False)


def _check_queues(queues: object) -> None:
    if not isinstance(queues, Collection) or not all(isinstance(one, MessageQueue) for one in queues):
        raise ConfigError(
            f"queues={queues!r}: want a list of MessageQueue, as fetch_queues(topic) returns it"
        )
