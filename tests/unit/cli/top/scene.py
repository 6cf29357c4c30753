"""The live view on a cluster in this process, without a terminal."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass

from textual.pilot import Pilot

from rmqtools import ClientConfig, MessageQueue
from rmqtools.cli.top.app import TopApp
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.model.group import SubscriptionData
from rmqtools.model.running_info import ConsumerRunningInfo, ProcessQueueInfo
from rmqtools.testing import FakeCluster
from tests.support.patience import PATIENCE, PATIENT_REQUEST


@dataclass(frozen=True)
class View:
    """An open view. It works during calls of these methods, and stands still between them."""

    app: TopApp
    _pilot: Pilot[int]
    _runner: asyncio.Runner

    def press(self, *keys: str) -> None:
        self._runner.run(self._pilot.press(*keys))

    def until(self, *words: str, looks: int = 0) -> str:
        """Wait until the view has looked so often and its picture has all these words; return the picture."""
        return self._runner.run(self._until(words, looks))

    async def _until(self, words: Sequence[str], looks: int) -> str:
        end = SYSTEM_CLOCK.monotonic() + PATIENCE
        shown = picture(self.app)
        while not all(word in shown for word in words) or self.app.looks < looks:
            assert SYSTEM_CLOCK.monotonic() < end, f"{words} are not in\n{shown}"
            await self._pilot.pause(0.02)
            shown = picture(self.app)
        return shown


@contextmanager
def watching(
    cluster: FakeCluster,
    *,
    size: tuple[int, int] = (80, 24),
    allowed: str = "",
    tab: str = "g",
    request_timeout: float = PATIENT_REQUEST,
) -> Iterator[View]:
    """Open the view at a tab, and close it at the end."""
    config = ClientConfig(name_server=cluster.name_server, request_timeout=request_timeout)
    app, stack = TopApp(config, interval=0.2, allowed_groups=allowed), AsyncExitStack()
    with asyncio.Runner() as runner:
        test = app.run_test(size=size, notifications=True)
        view = View(app, runner.run(stack.enter_async_context(test)), runner)
        try:
            view.press(tab)
            yield view
        finally:
            runner.run(stack.aclose())


def picture(app: TopApp) -> str:
    """The screen as plain text."""
    lines = app.screen._compositor.render_strips()
    return "\n".join(line.text.rstrip() for line in lines)


def report(topic: str, *queues: tuple[str, int], strategy: str = "PINS") -> ConsumerRunningInfo:
    """What a member that owns these queues says of itself."""
    return ConsumerRunningInfo(
        properties={"PROP_RMQTOOLS_STRATEGY": strategy},
        subscription_set=(SubscriptionData(topic=topic),),
        mq_table={MessageQueue(topic, *queue): ProcessQueueInfo() for queue in queues},
    )
