"""The live view on a cluster in this process, without a terminal."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from textual.pilot import Pilot

from rmqtools import ClientConfig, MessageQueue
from rmqtools.cli.top.app import TopApp
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.model.group import SubscriptionData
from rmqtools.model.running_info import ConsumerRunningInfo, ProcessQueueInfo
from rmqtools.testing import FakeCluster
from tests.support.patience import PATIENCE, PATIENT_REQUEST

Steps = Callable[[TopApp, Pilot[int]], Coroutine[None, None, None]]


def watch(
    cluster: FakeCluster,
    steps: Steps,
    *,
    size: tuple[int, int] = (80, 24),
    allowed: str = "",
    tab: str = "g",
    request_timeout: float = PATIENT_REQUEST,
) -> None:
    """Open the view at a tab, take the steps, close it."""

    async def run() -> None:
        config = ClientConfig(name_server=cluster.name_server, request_timeout=request_timeout)
        app = TopApp(config, interval=0.2, allowed_groups=allowed)
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.press(tab)
            await steps(app, pilot)

    asyncio.run(run())


async def until(app: TopApp, pilot: Pilot[int], *words: str) -> str:
    """Wait until the picture has all these words, and return it."""
    end = SYSTEM_CLOCK.monotonic() + PATIENCE
    while not all(word in (shown := picture(app)) for word in words):
        assert SYSTEM_CLOCK.monotonic() < end, f"{words} are not in\n{shown}"
        await pilot.pause(0.02)
    return shown


def picture(app: TopApp) -> str:
    """The screen as plain text."""
    lines = app.screen._compositor.render_strips()
    return "\n".join(line.text.rstrip() for line in lines)


def report(topic: str, *queues: tuple[str, int], strategy: str = "PINS") -> ConsumerRunningInfo:
    """What a member that owns these queues says of itself."""
    return report_all([topic], [MessageQueue(topic, *queue) for queue in queues], strategy=strategy)


def report_all(
    topics: Sequence[str], queues: Sequence[MessageQueue], *, strategy: str = "PINS"
) -> ConsumerRunningInfo:
    """The same of a member that subscribes to several topics."""
    return ConsumerRunningInfo(
        properties={"PROP_RMQTOOLS_STRATEGY": strategy},
        subscription_set=tuple(SubscriptionData(topic=topic) for topic in topics),
        mq_table={queue: ProcessQueueInfo() for queue in queues},
    )
