"""A case is worth something only if it can fail: engines broken on purpose, on the in-process cluster."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rmqtools import Outcome as SendOutcome
from rmqtools.engine.consumer.hand_out import HandOut
from rmqtools.engine.producer import send
from rmqtools.policy.backoff import ConnectBackoff
from rmqtools.policy.retry import SendLoop
from rmqtools.testing import FakeCluster
from tests.support.fake import Fake
from tests.support.skipping_loop import run_skipping
from tools.measure.faults import load
from tools.measure.faults.bench import Bench
from tools.measure.faults.body import decode_body
from tools.measure.faults.broker_cases import all_brokers_down, killed_master
from tools.measure.faults.figures import unmet
from tools.measure.faults.network_cases import cut_answers, dropped_answers
from tools.measure.faults.run import Outcome

pytestmark = pytest.mark.slow  # it is about the cases, and they change rarely

BROKERS = ("broker-a", "broker-b", "broker-c")


class FakeSite(Fake):
    """The in-process cluster, as a site."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.name_server = cluster.name_server
        self.broker_addrs = {broker: cluster.addr(broker) for broker in BROKERS}

    def kill(self, service: str) -> None:
        self._cluster.stop(service, in_route=False)

    def start(self, service: str, *, wait: bool = True) -> None:
        self._cluster.restart(service)

    def restore(self) -> None:
        """Whatever was stopped is started by the cases themselves."""


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """Of a bench; its time is that of a loop that does not wait, whatever else the machine does."""
    return {
        "folder": tmp_path,
        "seconds": 6.0,
        "drain_seconds": 5.0,
        "client": {"poll_name_server_interval": 0.5, "heartbeat_broker_interval": 0.5},
        "reader": {"delay_after_error": 0.1, "pull_timeout": 1.0, "long_poll_timeout": 0.5},
    }


def outcome_of_case(case: Any, settings: dict[str, Any]) -> Outcome:
    async def on_a_cluster() -> Outcome:
        async with FakeCluster(brokers=BROKERS) as cluster:
            return await case(Bench(site=FakeSite(cluster), **settings))

    return run_skipping(on_a_cluster)


def run(case: Any, settings: dict[str, Any]) -> str:
    return " ".join(unmet(outcome_of_case(case, settings).figures, times=False))


@pytest.mark.parametrize("case", [killed_master, dropped_answers, cut_answers])
def test_a_sound_engine_meets_the_figures(settings, case):
    assert run(case, settings) == ""


def test_an_engine_that_calls_an_unanswered_send_failed_is_found(settings, monkeypatch):
    monkeypatch.setattr(send, "outcome_of", lambda error: SendOutcome.REFUSED)

    assert "unexplained copies" in run(dropped_answers, settings)


def test_an_engine_that_gives_a_dead_broker_no_second_try_is_found(settings, monkeypatch):
    monkeypatch.setattr(send.Sender, "_loop_for", lambda self, choice: SendLoop(1))
    # The route is not polled, so that no producer hears of the death before it has sent to the dead broker.
    settings["client"]["poll_name_server_interval"] = 30.0

    assert "failed sends" in run(killed_master, settings)


def connects_per_second(settings: dict[str, Any]) -> float:
    outcome = outcome_of_case(all_brokers_down, settings)
    return next(float(str(figure.value)) for figure in outcome.figures if figure.name.startswith("connects"))


def test_an_engine_that_connects_again_for_every_send_is_found(settings, monkeypatch):
    sound = connects_per_second(settings)
    monkeypatch.setattr(ConnectBackoff, "reason", lambda *_: None)

    assert connects_per_second(settings) > 2 * sound


def test_a_consumer_that_skips_a_message_is_found(settings, monkeypatch):
    take = HandOut.take
    turn = count()

    def skipping(self: HandOut, at_most: int) -> list[Any]:
        return [message for message in take(self, at_most) if next(turn) % 3]

    monkeypatch.setattr(HandOut, "take", skipping)

    found = run(killed_master, settings)

    assert "lost" in found
    assert "gap" in found


def test_a_damaged_body_is_found(settings, monkeypatch):
    decode = decode_body
    monkeypatch.setattr(load, "decode_body", lambda body: decode(body[:-1] if b"p0 7 " in body else body))

    assert "corrupt" in run(cut_answers, settings)
