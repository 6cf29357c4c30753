"""Adapter of the vectors about rounds of a rebalance: a scripted consumer, the real rounds."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rmqtools.allocate import AllocateAveragely, AllocateMessageQueueStrategy
from rmqtools.engine.group.hold_and_release import QueueTable
from rmqtools.engine.group.ownership import TRY_AGAIN_DELAY
from rmqtools.engine.group.process_queue import ProcessQueue
from rmqtools.engine.group.rebalance import Rebalance
from rmqtools.model.group import ConsumeType
from rmqtools.model.queue import MessageQueue
from rmqtools.policy.allocate.member_list import MemberList
from tests.contract.vector_spec import Case, Spec, show_queues
from tests.support.clock import ManualClock
from tests.support.fake import Fake

_TOPIC = "T"
_LONG_AGO = 3600.0


class _Throwing:
    name = "throws"

    def allocate(self, *_: object) -> list[MessageQueue]:
        raise RuntimeError("as the vector says")


_STRATEGIES: dict[str, AllocateMessageQueueStrategy] = {"AVG": AllocateAveragely(), "throws": _Throwing()}


class _ScriptedHolder(Fake):
    """Answers as a case says, and notes what it was asked.

    A strategy that throws does so here for listed members only: ours are not asked about others. Queues of
    topics no longer subscribed are released here like others; Java forgets them without a word.
    """

    group = "g"

    def __init__(self, case: Case, clock: ManualClock) -> None:
        self.subscriptions = self.membership = self.held = self  # the parts of a member, all scripted here
        self.assigned = None
        self.client_id = case["clientId"]
        self.pulled: QueueTable[ProcessQueue] = QueueTable()
        for held in _table(case["tableBefore"], clock):
            self.pulled[held.queue] = held
        self.consume_type = ConsumeType(case["consumeType"])
        self.is_broadcasting = case["messageModel"] == "BROADCASTING"
        self.is_orderly = case["isOrder"]
        self._members = case["cidAll"]
        if self._members and case["strategy"] == "throws":
            self._members = [*self._members, case["clientId"]]
        self._clock = clock
        entries = case["subscribed"]
        self._queues = None if entries is None else [_queue(entry["queue"]) for entry in entries]
        self._starts = {_queue(entry["queue"]): entry["startOffset"] for entry in entries or ()}
        self._refused = {_queue(entry["queue"]) for entry in entries or () if entry["lockRefused"]}
        self._kept = {
            queue
            for entry in case["tableBefore"]
            if entry["removeRefused"] and (queue := _queue(entry["queue"])).topic == _TOPIC
        }
        self.released: list[MessageQueue] = []
        self.forgotten: list[MessageQueue] = []
        self.started: list[tuple[MessageQueue, int]] = []
        self.changes: list[Case] = []
        self.has_kept = False

    def answers(self) -> Case:
        """What it was asked, as the vectors write it."""
        return {
            "removeAsked": show_queues(sorted(self.released)),
            "dirtyOffsetRemoved": show_queues(sorted(self.forgotten)),
            "pullRequests": [
                {"queue": show_queues([queue])[0], "nextOffset": offset}
                for queue, offset in sorted(self.started)
            ],
            "messageQueueChanged": self.changes,
        }

    def topics(self) -> Sequence[str]:
        return [_TOPIC]

    def wants(self, queue: MessageQueue) -> bool:
        return True

    async def find_queues(self, topic: str) -> Collection[MessageQueue] | None:
        return self._queues

    async def find_members(self, topic: str, told: object) -> MemberList | None:
        return None if self._members is None else MemberList(tuple(self._members))

    async def give_up(self, doomed: Iterable[ProcessQueue]) -> None:
        for held in doomed:
            held.drop()
            if held.queue.topic == _TOPIC:
                self.released.append(held.queue)
            if held.queue not in self._kept:
                del self.pulled[held.queue]

    def is_leaving(self, held: ProcessQueue) -> bool:
        return False

    def holds(self, held: ProcessQueue) -> bool:
        return held in self.pulled.values()

    def works(self, queue: MessageQueue) -> bool:
        held = self.pulled.get(queue)
        return held is not None and not held.is_dropped

    async def lock(self, queues: Collection[MessageQueue]) -> Collection[MessageQueue]:
        return [queue for queue in queues if queue not in self._refused] if self.is_orderly else queues

    async def unlock(self, queues: Collection[MessageQueue]) -> None:
        """Ours: Java keeps the lock of a queue whose start is unknown."""

    def forget(self, queue: MessageQueue) -> None:
        self.forgotten.append(queue)

    async def start_offset(self, queue: MessageQueue) -> int:
        return self._starts[queue]

    def hold(self, queue: MessageQueue, offset: int) -> ProcessQueue:
        self.started.append((queue, offset))
        self.pulled[queue] = ProcessQueue(queue, self._clock, offset)
        return self.pulled[queue]

    def queues_changed(
        self, topic: str, all_queues: Collection[MessageQueue], mine: Collection[MessageQueue]
    ) -> None:
        self.changes.append(
            {"topic": topic, "mqAll": show_queues(sorted(all_queues)), "mqDivided": show_queues(sorted(mine))}
        )


def rebalance(case: Case) -> Case:
    """One round of the case."""
    clock = ManualClock()
    holder = _ScriptedHolder(case, clock)
    rounds = Rebalance(
        holder,
        start_offset=holder.start_offset,
        queues_changed=holder.queues_changed,
    )
    balanced = asyncio.run(rounds.run(_STRATEGIES[case["strategy"]]))
    after = {_name(q): "dropped" if held.is_dropped else "working" for q, held in holder.pulled.items()}
    later = [round(TRY_AGAIN_DELAY * 1000)] if rounds.must_try_again else []
    return {"balanced": balanced, "tableAfter": after, "rebalanceLater": later} | holder.answers()


def _table(entries: Sequence[Case], clock: ManualClock) -> Iterable[ProcessQueue]:
    """The queues held before; those whose pull has expired are made first, the others an hour later."""
    ordered = sorted(entries, key=lambda entry: not entry["pullExpired"])
    for number, entry in enumerate(ordered):
        if not entry["pullExpired"] and (number == 0 or ordered[number - 1]["pullExpired"]):
            clock.advance(_LONG_AGO)
        held = ProcessQueue(_queue(entry["queue"]), clock)
        if entry["dropped"]:
            held.drop()
        yield held
    if ordered and ordered[-1]["pullExpired"]:
        clock.advance(_LONG_AGO)


def _queue(parts: Sequence[Any]) -> MessageQueue:
    return MessageQueue(*parts)


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


SPECS = {
    "rebalance_diff": (
        Spec(
            inputs=(
                "messageModel",
                "consumeType",
                "isOrder",
                "clientId",
                "strategy",
                "cidAll",
                "subscribed",
                "tableBefore",
            ),
            adapter=rebalance,
        ),
    ),
}
