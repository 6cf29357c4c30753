"""The simulation in small, and whether it can find anything: engines broken on purpose."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from rmqtools import Outcome
from rmqtools.engine.connection.transport import Connection
from rmqtools.engine.consumer.hand_out import HandOut
from rmqtools.engine.exact import staged_writes, tail
from rmqtools.engine.exact.own_broker import OwnBroker
from rmqtools.engine.group import membership
from rmqtools.engine.producer import send
from rmqtools.model.message import MessageExt
from rmqtools.policy.exact_append import LockAge
from rmqtools.policy.staged import Decisions
from tools.measure.sim import exact
from tools.measure.sim.exact import simulate_exact
from tools.measure.sim.mirror import MIRROR_KINDS, MirrorWorld, simulate_mirror
from tools.measure.sim.run import simulate
from tools.measure.sim.staged import simulate_staged
from tools.measure.sim.trouble import KINDS, plan

pytestmark = [pytest.mark.process, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 200
FEW_SEEDS = 4


def sim(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.measure.sim", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=1000,
    )


def is_found(text: str, seeds: range) -> bool:
    """Run seed after seed until one finds it."""
    return any(text in found for seed in seeds for found in simulate(seed).found)


@pytest.mark.parametrize("seeds", [FEW_SEEDS, pytest.param(SEEDS, marks=pytest.mark.slow)])
def test_the_engine_keeps_its_promises_whatever_the_trouble(seeds):
    run = sim("--seeds", str(seeds))

    assert run.returncode == 0, run.stdout
    assert run.stdout.startswith(f"{seeds} runs, 0 with findings")


def test_every_kind_of_trouble_comes():
    drawn = {trouble.what for seed in range(SEEDS) for trouble in plan(random.Random(seed), 4.0)}

    assert drawn == set(KINDS)


def test_a_seed_is_the_same_run_again():
    first, second = (sim("--seed", "7").stdout for _ in range(2))

    assert first == second
    assert first.count('"answered"') > 100


def test_a_consumer_that_skips_messages_is_found(monkeypatch):
    take = HandOut.take
    monkeypatch.setattr(HandOut, "take", lambda self, count: take(self, count)[::2])

    assert is_found("lost", range(2))


def test_a_member_that_believes_a_list_with_doubles_is_found(monkeypatch):
    monkeypatch.setattr(membership, "has_doubles", lambda client_ids: False)

    assert is_found("lost", range(60))


def test_an_unanswered_send_that_is_called_refused_is_found(monkeypatch):
    monkeypatch.setattr(send, "outcome_of", lambda error: Outcome.REFUSED)

    assert is_found("unexplained copies", range(20))


def test_a_send_that_outlasts_its_timeout_is_found(monkeypatch):
    start = Connection.start
    monkeypatch.setattr(
        Connection, "start", lambda self, command, timeout: start(self, command, 10 * timeout)
    )

    assert is_found("longest send", range(20))


@pytest.mark.parametrize("seeds", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_exact_appenders_store_each_position_once_whatever_the_trouble(seeds):
    run = sim("--exact", "--seeds", str(seeds))

    assert run.returncode == 0, run.stdout
    assert run.stdout.startswith(f"{seeds} runs, 0 with findings")


async def nothing(*_: object) -> None:
    """Do not wait."""


def test_an_appender_that_does_not_wait_for_late_requests_is_found(monkeypatch):
    monkeypatch.setattr(OwnBroker, "await_answering", nothing)

    assert "stored twice" in simulate_exact(48).found[0]


def test_an_appender_that_trusts_an_old_lock_is_found(monkeypatch):
    monkeypatch.setattr(LockAge, "may_send", lambda self, now: True)

    assert "stored twice" in simulate_exact(702).found[0]


@pytest.mark.parametrize("seeds", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_mirrors_copy_each_message_once_whatever_the_trouble(seeds):
    run = sim("--mirror", "--seeds", str(seeds))

    assert run.returncode == 0, run.stdout
    assert run.stdout.startswith(f"{seeds} runs, 0 with findings")


def test_a_mirror_whose_topics_grow_before_it_begins_is_followed_by_messages():
    assert simulate_mirror(503).found == []


def found_with(monkeypatch, seed: int, *kinds: str) -> list[str]:
    """Findings of one run of mirrors that has only these troubles."""
    wanted = {name: {**exact.KINDS, **MIRROR_KINDS}[name] for name in kinds}
    monkeypatch.setattr(exact, "KINDS", {})
    return exact.simulate_exact(seed, MirrorWorld, wanted).found


@pytest.mark.slow
def test_a_mirror_that_compares_no_times_where_nothing_was_copied_is_found(monkeypatch):
    monkeypatch.setattr(tail, "SEEN", "%NEVER")  # nothing is stored under this name

    kinds = (
        "the source loses its end",
        "the source topic is made anew",
        "messages expire",
        "the writer dies",
    )
    assert "want the first of" in found_with(monkeypatch, 0, *kinds)[0]


@pytest.mark.slow
def test_a_mirror_that_is_cut_off_and_keeps_its_connection_is_found(monkeypatch):
    monkeypatch.setattr(OwnBroker, "abort", lambda self: None)

    assert "are copied, want" in found_with(monkeypatch, 2, "the mirror alone is cut off")[0]


@pytest.mark.parametrize("seeds", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_staged_writes_store_the_first_rows_of_the_source_once_and_in_order(seeds):
    run = sim("--staged", "--seeds", str(seeds))

    assert run.returncode == 0, run.stdout
    assert run.stdout.startswith(f"{seeds} runs, 0 with findings")


def test_an_old_micro_batch_run_again_does_not_hide_lost_decisions():
    assert simulate_staged(47).found == []


def test_a_driver_that_decides_a_commit_again_is_found(monkeypatch):
    note = Decisions.note

    def count_any(self: Decisions, message: MessageExt) -> None:
        last, self.last = self.last, None
        note(self, message)
        if self.last is None:  # no decision
            self.last = last
            note(self, message)

    monkeypatch.setattr(Decisions, "note", count_any)

    assert "14, 15, 16, 14, 15, 16" in simulate_staged(8).found[0]


def test_a_driver_that_does_not_compare_the_rows_of_a_repeat_is_found(monkeypatch):
    monkeypatch.setattr(staged_writes, "check_same", lambda *_, **__: None)

    assert "rows" in simulate_staged(23).found[0]
