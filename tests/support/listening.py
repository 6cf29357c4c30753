"""For tests of push consumers: a listener that records its messages, and one interface to both faces."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rmqtools import (
    Admin,
    ConsumeContext,
    ConsumeFromWhere,
    MessageExt,
    PushConsumer,
    PushConsumerConfig,
    aio,
)
from rmqtools.sync.loop import Bridge
from tests.support.patience import PATIENCE

Listener = Callable[[Sequence[MessageExt], ConsumeContext], Any]
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


class Heard:
    """A listener. ``answer(messages, context)``, if given, is called after they are noted."""

    def __init__(self, answer: Listener | None = None) -> None:
        self._answer = answer
        self._changed = threading.Condition()
        self.batches: list[Sequence[MessageExt]] = []

    def __call__(self, messages: Sequence[MessageExt], context: ConsumeContext) -> Any:
        with self._changed:
            self.batches.append(messages)
            self._changed.notify_all()
        return self._answer(messages, context) if self._answer else None

    @property
    def messages(self) -> list[MessageExt]:
        with self._changed:
            return [message for batch in self.batches for message in batch]

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]

    def wait(self, count: int, *, seconds: float = PATIENCE) -> list[MessageExt]:
        """Wait until so many messages were heard."""
        with self._changed:
            came = self._changed.wait_for(lambda: sum(map(len, self.batches)) >= count, seconds)
        assert came, f"{len(self.messages)} of {count} messages after {seconds} s: {Counter(self.bodies)}"
        return self.messages


class AsyncFace:
    """The asynchronous consumer, used like the blocking one; its listeners run on the loop."""

    def __init__(self, config: PushConsumerConfig) -> None:
        self.consumer = aio.PushConsumer(config)
        self._bridge = Bridge()

    def subscribe(self, topic: str, listener: Listener) -> None:
        async def listen(messages: Sequence[MessageExt], context: ConsumeContext) -> Any:
            return listener(messages, context)

        async def subscribe() -> None:
            self.consumer.subscribe(topic, listen)

        self._bridge.run(subscribe)

    def start(self) -> None:
        self._bridge.run(self.consumer.start)

    def close(self) -> None:
        self._bridge.run(self.consumer.close)


FACES = {"blocking": PushConsumer, "asynchronous": AsyncFace}


@contextmanager
def listening(
    name_server: str,
    topic: str,
    listener: Listener,
    *,
    tags: str = "*",
    sql: str | None = None,
    strategy: Any = None,
    **settings: Any,
) -> Iterator[PushConsumer]:
    """A push consumer; of a new group and from the first offset on, unless its settings say otherwise."""
    given: dict[str, Any] = {"group": new_group(), "consume_from": FIRST} | settings
    consumer = PushConsumer(PushConsumerConfig(name_server=name_server, **given), strategy=strategy)
    consumer.subscribe(topic, listener, tags=tags, sql=sql)
    with consumer:
        yield consumer


def new_group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"


def numbers(*bounds: int) -> list[bytes]:
    return [b"%d" % number for number in range(*bounds)]


def committed(admin: Admin, group: str, topic: str) -> int:
    """All offsets of a group in a topic, added up."""
    return sum(offset or 0 for offset in admin.fetch_consumer_offsets(group, topic).values())
