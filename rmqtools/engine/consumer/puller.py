"""Fetches a held queue: one pull after the other, including long polls, until the queue is dropped.

Source of the rules: DefaultMQPushConsumerImpl.pullMessage, PullAPIWrapper (Java client). Ours: an offset that
is no longer stored or was reset (OFFSET_ILLEGAL) is corrected at once (Java gives the queue up and takes it
again after 10 s); pulls go to a slave if the master does not answer, and back if the slave refuses.
"""

import asyncio
from functools import partial
from typing import NamedTuple

from rmqtools.engine.connection.refusals import FETCH
from rmqtools.engine.connection.remoting import forget_answer
from rmqtools.engine.consumer.burst_sources import FETCH_AGAIN_AFTER, PullSource
from rmqtools.engine.consumer.decode_answers import AnswerDecoder
from rmqtools.engine.consumer.fetch_loop import LOOK_AGAIN, FetchLoop
from rmqtools.engine.consumer.fetch_policy import FetchPolicy
from rmqtools.engine.group.member import Member
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.engine.reading.pull_command import parse_pull
from rmqtools.errors import BrokerError, RemotingError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.group import SubscriptionData
from rmqtools.model.names import RETRY_GROUP_TOPIC_PREFIX
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.model.route import MASTER_ID
from rmqtools.model.sys_flag import build_pull_sys_flag, clear_commit_offset_flag
from rmqtools.policy.publish import is_static
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.headers.pull import PullMessageRequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request
from rmqtools.protocol.wire.template import Request, RequestTemplate

log = get_logger(__name__)

_DECOMPRESSED_AHEAD_BYTES = 16 * 1024 * 1024  # of an answer's bodies, until more of it is decompressed
_TRUST_AGAIN = 30.0  # seconds after an unanswered pull in which suggestions of that broker are ignored


class _Asked(NamedTuple):
    """A pull on the wire: its offset, subscription, broker and start time."""

    offset: int
    subscription: SubscriptionData
    broker_addr: str
    is_slave: bool
    began: float
    answer: asyncio.Future[RemotingCommand]


class _Form(NamedTuple):
    """Form of a queue's pulls while its subscription and batch size stay the same."""

    subscription: SubscriptionData
    batch_size: int
    template: RequestTemplate


class Puller:
    """Fetches all held queues of one consumer, each in a task of its own."""

    def __init__(self, member: Member, policy: FetchPolicy) -> None:
        self._member = member
        self._policy = policy
        self._client = member.client
        self._names = member.names
        self._config = member.config
        self._subscriptions = member.subscriptions
        self._broker_ids: dict[MessageQueue, int] = {}
        self._unanswered: dict[str, float] = {}  # address -> time of the last pull that failed there
        self._loop = FetchLoop(member, policy.rate, self._pull_in_turn, self._log_failure)
        self._task_of: dict[ProcessQueue, asyncio.Task[None]] = {}
        self._forms: dict[ProcessQueue, _Form] = {}
        self._is_closed = False
        self._decoder = AnswerDecoder(
            member.note_passed_over,
            max_messages=member.config.pull_batch_size,
            max_body_bytes=member.config.max_decompressed_bytes,
        )

    @property
    def running(self) -> int:
        """Number of queues that are fetched now."""
        return len(self._loop.tasks)

    def start(self, held: ProcessQueue) -> None:
        """Begin to fetch a queue, unless this is closed: a queue may still be moved after that."""
        if self._is_closed:
            return
        task = self._loop.start(held, f"pull {held.queue}")
        self._task_of[held] = task
        task.add_done_callback(lambda _: self._ended(held))

    def stop(self, held: ProcessQueue) -> None:
        """Stop waiting for the answer about a dropped queue."""
        if (task := self._task_of.get(held)) is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop fetching."""
        self._is_closed = True
        await self._loop.tasks.stop()

    def _ask(self, held: ProcessQueue, offset: int) -> _Asked:
        """Send a pull from ``offset``; the broker holds the answer until it has messages."""
        held.pulled()
        queue, subscription = held.queue, self._forms[held].subscription
        found = self._client.routes.reading_addr(queue, self._broker_ids.get(queue, MASTER_ID))
        command = self._request(held, offset, is_slave=found.is_slave)
        began, timeout = self._client.clock.monotonic(), self._config.pull_timeout
        answer = self._client.remoting.invoke(found.broker_addr, command, timeout=timeout)
        return _Asked(
            offset, subscription, found.broker_addr, found.is_slave, began, asyncio.ensure_future(answer)
        )

    async def _answer(self, queue: MessageQueue, asked: _Asked) -> PullResult:
        try:
            result = parse_pull(await asked.answer, asked.broker_addr)
        except RemotingError:
            self._turn_to_next(queue, asked)
            self._member.offsets.forget_stored(self._client.routes.broker_name(queue))
            raise
        except BrokerError:
            if asked.is_slave:  # by default slaves refuse pulls, and they do not know new topics and groups
                self._turn_to_next(queue, asked)
            raise
        self._client.refusals.accepted(FETCH, queue.broker_name)
        suggested = result.suggest_which_broker_id
        if suggested != self._broker_ids.get(queue, MASTER_ID) and self._answers(queue, suggested):
            self._broker_ids[queue] = suggested
        return result

    def _answers(self, queue: MessageQueue, broker_id: int) -> bool:
        """Return whether a broker suggested by another one has answered its recent pulls."""
        addr = self._client.routes.reading_addr(queue, broker_id).broker_addr
        return self._client.clock.monotonic() - self._unanswered.get(addr, -_TRUST_AGAIN) >= _TRUST_AGAIN

    async def _make_form(self, held: ProcessQueue) -> None:
        """Prepare the pulls of a queue.

        Raises:
            ConfigError: brokers cannot filter this topic by the subscription's expression.
        """
        wanted = self._subscriptions.of(held.queue.topic)
        asked = await self._client.queue_types.filter_at_broker(held.queue, wanted)
        batch_size = self._batch_size()
        self._forms[held] = _Form(wanted, batch_size, self._template(held.queue, asked, batch_size))

    def _has_form(self, held: ProcessQueue) -> bool:
        form, wanted = self._forms.get(held), self._subscriptions.of(held.queue.topic)
        return form is not None and (form.subscription, form.batch_size) == (wanted, self._batch_size())

    def _batch_size(self) -> int:
        return self._policy.rate.batch_size(self._config.pull_batch_size)

    def _request(self, held: ProcessQueue, offset: int, *, is_slave: bool) -> Request:
        noted = self._policy.offset_for_pull(held.queue)
        form = self._forms[held]
        by_tags = _is_by_tags(form.subscription)
        sys_flag = build_pull_sys_flag(commit_offset=bool(noted), suspend=True, subscription=by_tags)
        if is_slave:
            sys_flag = clear_commit_offset_flag(sys_flag)
        return form.template.fill(offset, sys_flag, noted or 0)

    def _template(
        self, queue: MessageQueue, subscription: SubscriptionData, batch_size: int
    ) -> RequestTemplate:
        header = PullMessageRequestHeader(
            consumer_group=self._member.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=0,
            max_msg_nums=batch_size,
            sys_flag=0,
            commit_offset=0,
            suspend_timeout_millis=round(self._config.long_poll_timeout * 1000),
            subscription=subscription.sub_string if _is_by_tags(subscription) else None,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            bname=queue.broker_name,
        )
        return RequestTemplate(request(header), ("queueOffset", "sysFlag", "commitOffset"))

    def _log_failure(self, held: ProcessQueue, error: Exception) -> None:
        queue, group = str(held.queue), self._member.group
        if isinstance(error, RocketMQError):
            log.warning("pull_failed", group=group, queue=queue, reason=str(error))
        else:
            log.error("pull_failed", group=group, queue=queue, reason=repr(error), exc_info=error)

    async def _pull_in_turn(self, held: ProcessQueue) -> None:
        """Pull until the queue is dropped or something fails.

        If the broker has more messages, the next pull is sent before an answer is decoded and handed out, so
        that the broker does not idle meanwhile. If it has none, messages are handed out before the next pull.
        The queue's ``next_offset`` advances with the messages handed out.
        """
        following: _Asked | None = None
        goes_well = False  # before that, a pull left behind could take the only report of a reset
        try:
            while not held.is_dropped:
                if (rest := self._rest(held)) > 0:
                    held.note_waiting()
                    await held.changed(rest)
                    continue
                if following is None and not self._has_form(held):
                    await self._make_form(held)
                    continue
                asked, following = following or self._ask(held, held.next_offset), None
                result = await self._answer(held.queue, asked)
                seconds = self._client.clock.monotonic() - asked.began
                held.broker_end = result.max_offset
                self._note_progress(held, asked, result)
                if not self._is_wanted(held, asked):
                    self._move_if_reset(held, asked.offset, result)
                    continue
                has_more = result.status is PullStatus.FOUND and result.next_begin_offset < result.max_offset
                if goes_well and has_more and self._may_burst(held, asked, result):
                    await self._handle_each(held, asked, result, seconds)
                    await self._burst_of(held, asked)
                    continue
                if goes_well and has_more and self._may_pull_ahead(held, result):
                    following = self._ask(held, result.next_begin_offset)
                    await asyncio.sleep(0)  # the request is sent before decoding begins
                    if not self._is_wanted(held, asked):
                        return
                await self._handle_each(held, asked, result, seconds)
                goes_well = True
        finally:
            if following is not None:
                forget_answer(following.answer)

    def _may_burst(self, held: ProcessQueue, asked: _Asked, result: PullResult) -> bool:
        """Return whether a listener's thread may pull the queue: nothing about it is out of the ordinary."""
        queue, ahead = held.queue, result.max_offset - result.next_begin_offset
        if not self._policy.may_burst() or asked.is_slave or ahead < self._config.pull_batch_size:
            return False
        if self._client.endpoint.is_proxy or is_static(queue) or self._names.plain_queue(queue) is not queue:
            return False
        is_of_retries = queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        return not is_of_retries and self._client.clock.monotonic() >= held.burst_from

    async def _burst_of(self, held: ProcessQueue, asked: _Asked) -> None:
        """Let a listener's thread pull the queue once all messages held are consumed; return when it ends."""
        while held.count and not held.is_dropped and self._policy.may_burst():
            held.note_waiting()
            await held.changed(LOOK_AGAIN)
        if held.count or held.is_dropped or not self._policy.may_burst() or not self._has_form(held):
            return
        source, begin = self._source(held, asked), held.next_offset
        self._policy.add(source)
        await source.returned
        if source.is_unfit and held.next_offset == begin:
            held.burst_from = self._client.clock.monotonic() + FETCH_AGAIN_AFTER

    def _source(self, held: ProcessQueue, asked: _Asked) -> PullSource:
        queue, form, topic = held.queue, self._forms[held], held.queue.topic
        by_tags = _is_by_tags(form.subscription)
        flags = [build_pull_sys_flag(commit_offset=stores, subscription=by_tags) for stores in (False, True)]
        pulled, member = self._decoder.pulled, self._member

        def note_pulls(count: int, times: int, seconds: float) -> None:
            held.pulled()
            member.note_pulled(topic, count=count, pulls=times, seconds=seconds)

        def note_offset(offset: int) -> None:
            if member.held.holds(held):
                member.offsets.update(queue, offset, increase_only=True)

        return PullSource(
            held=held,
            topic=topic,
            broker_id=self._broker_ids.get(queue, MASTER_ID),
            addr=asked.broker_addr,
            request=lambda offset, done: form.template.fill(offset, flags[done > 0], done),
            decode=lambda result, begin: pulled(queue, result, begin=begin, subscription=form.subscription),
            note_fetched=note_pulls,
            note_offset=note_offset,
            move=partial(self._move_if_reset, held),
            may_go_on=lambda: self._has_form(held) and self._policy.may_pull(held),
            may_store=lambda: self._policy.offset_for_pull(queue) is not None,
            returned=asyncio.get_running_loop().create_future(),
            next_offset=held.next_offset,
            broker_end=held.broker_end,
        )

    def _rest(self, held: ProcessQueue) -> float:
        """Seconds after which a queue is looked at again; 0: it is pulled now."""
        return self._loop.delay(held.queue) if self._policy.may_pull(held) else LOOK_AGAIN

    def _note_progress(self, held: ProcessQueue, asked: _Asked, result: PullResult) -> None:
        """Note whether an answer brought anything, or was held by the broker until its time was over."""
        moved = result.status is not PullStatus.OFFSET_ILLEGAL and result.next_begin_offset > asked.offset
        seconds = self._client.clock.monotonic() - asked.began
        is_held = result.status is not PullStatus.FOUND and self._loop.is_held(seconds)
        self._loop.answered(held.queue, has_progress=moved or is_held)

    def _may_pull_ahead(self, held: ProcessQueue, coming: PullResult) -> bool:
        return not self._policy.rate.is_limited and self._policy.may_pull(held, coming=coming)

    def _is_wanted(self, held: ProcessQueue, asked: _Asked) -> bool:
        """Return whether a pull still asks for the right offset: the broker may have held it for long."""
        wanted = held.next_offset, self._subscriptions.of(held.queue.topic)
        return not held.is_dropped and wanted == (asked.offset, asked.subscription)

    async def _handle_each(
        self, held: ProcessQueue, asked: _Asked, result: PullResult, seconds: float
    ) -> None:
        """Hand out an answer portion by portion; of bodies that grow, the next only when few are held."""
        rest = await self._handle(held, result, seconds)
        while rest is not None:
            asked = asked._replace(offset=held.next_offset)
            await asyncio.sleep(0)  # decoding has taken its time: others first
            while not held.is_dropped and not self._may_decompress(held):
                held.note_waiting()
                await held.changed(LOOK_AGAIN)
            if not self._is_wanted(held, asked):
                return
            rest = await self._handle(held, result, 0.0, skip=rest)

    def _may_decompress(self, held: ProcessQueue) -> bool:
        return held.cached_bytes < _DECOMPRESSED_AHEAD_BYTES and self._policy.may_pull(held)

    async def _handle(
        self, held: ProcessQueue, result: PullResult, seconds: float, *, skip: int = 0
    ) -> int | None:
        """Take the next portion of an answer; return the messages taken so far, None if those are all."""
        if result.status is PullStatus.FOUND:
            wanted = self._subscriptions.of(held.queue.topic)
            found = self._decoder.pulled(
                held.queue, result, begin=held.next_offset, subscription=wanted, skip=skip
            )
            held.next_offset = found.next_offset
            self._member.note_pulled(held.queue.topic, count=len(found.messages), seconds=seconds)
            self._policy.rate.fetched(len(found.messages))
            if (answer := held.put(found.messages)) is not None:
                self._policy.fetched(held, answer)
            if found.error is not None:
                raise found.error
            if found.rest is not None:
                return found.rest
        elif result.status is PullStatus.OFFSET_ILLEGAL:
            self._forms.pop(held, None)  # a topic that was created again may have another queue type
            if not self._move_if_reset(held, held.next_offset, result):
                _log_moved(held, held.next_offset, result)
                await self._restart(held, _moved_to(held, result))
            return None
        else:
            held.next_offset = result.next_begin_offset
            if is_static(held.queue):  # see _moved_to
                return None
        if held.count == 0:  # no message is being consumed: skipped offsets count as consumed
            self._policy.passed_over(held)
        return None

    def _move_if_reset(self, held: ProcessQueue, asked: int, result: PullResult) -> bool:
        """Continue where an administrator has set the offset, at once; return whether an answer says that.

        Brokers report it once; that an offset is not stored, to every pull.
        """
        if result.status is not PullStatus.OFFSET_ILLEGAL or held.is_dropped:
            return False
        if not result.min_offset <= asked <= result.max_offset:
            return False
        _log_moved(held, asked, result)
        self._member.held.move(held, result.next_begin_offset, note=True)
        return True

    async def _restart(self, held: ProcessQueue, offset: int) -> None:
        """Continue at another offset once all fetched messages are consumed: they cannot be fetched again."""
        asked = held.next_offset
        while held.count and not held.is_dropped:
            held.note_waiting()
            await held.changed(LOOK_AGAIN)
        if not held.is_dropped and held.next_offset == asked:
            self._member.held.move(held, offset, note=self._policy.commits_moves, is_requested=False)

    def _turn_to_next(self, queue: MessageQueue, failed: _Asked) -> None:
        """Use another broker of the set for the next pull, if there is one; the first after the last one."""
        self._unanswered[failed.broker_addr] = self._client.clock.monotonic()
        ids = sorted(self._client.routes.tables.broker_addrs.get(queue.broker_name, ()))
        now = self._broker_ids.get(queue, MASTER_ID)
        if ids:
            self._broker_ids[queue] = next((id_ for id_ in ids if id_ > now), ids[0])

    def _ended(self, held: ProcessQueue) -> None:
        self._task_of.pop(held, None)
        self._forms.pop(held, None)
        if held.queue not in self._member.held.pulled:
            self._loop.forget(held.queue)


def _is_by_tags(subscription: SubscriptionData) -> bool:
    """Return whether pulls carry the expression. SQL92 conditions are not sent: heartbeats carry them."""
    return subscription.expression_type == TAG


def _log_moved(held: ProcessQueue, asked: int, result: PullResult) -> None:
    log.warning(
        "pull_offset_moved",
        queue=str(held.queue),
        asked=asked,
        next=result.next_begin_offset,
        stored=(result.min_offset, result.max_offset),
    )


def _moved_to(held: ProcessQueue, result: PullResult) -> int:
    """Return the offset to continue at after one that is not stored.

    While a static topic's queue moves, two brokers may both convert the offset of one answer (seen with
    5.5.0, rewriteResponseForStaticTopic: 10000 twice). Then an answer without messages leads behind the end
    of the queue. Such offsets are not committed, and the queue continues behind the last message it brought.
    """
    if is_static(held.queue) and result.min_offset <= held.end <= result.max_offset:
        return held.end
    return result.next_begin_offset
