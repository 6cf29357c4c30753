"""What options become for a write."""

import pickle

import pytest

from rmqtools.errors import ConfigError
from rmqtools.select import (
    SelectMessageQueueByHash,
    SelectMessageQueueByMachineRoom,
    SelectMessageQueueByRandom,
)
from tests.support.spark_options import write_of


@pytest.fixture(autouse=True)
def _listed(monkeypatch):
    monkeypatch.setenv("RMQTOOLS_SPARK_PLUG_INS", __name__)


class Own:
    """A user's selector."""

    def __init__(self, shard_count: str, name: str = "x") -> None:
        self.shard_count = shard_count

    def __call__(self, queues, message, arg):
        return queues[0]


def not_callable() -> int:
    return 1


class NotCallable:
    """A class whose instances cannot be called."""


OWN = f"{__name__}:Own"


def test_latency_fault_avoidance_is_on_unless_switched_off():
    assert write_of().producer.send_latency_fault_enable
    assert not write_of(**{"rocketmq.sendLatencyFaultEnable": "false"}).producer.send_latency_fault_enable
    assert not write_of(**{"rocketmq.send_latency_fault_enable": "no"}).producer.send_latency_fault_enable


def test_queues_come_in_turn_unless_told_otherwise():
    assert write_of().make_selector is None
    assert write_of(queueSelector="Round-Robin").make_selector is None


@pytest.mark.parametrize(
    ("given", "selector"),
    [
        ({"queueSelector": "hash"}, SelectMessageQueueByHash()),
        ({"queueSelector": "Random"}, SelectMessageQueueByRandom()),
        (
            {"queueSelector": "machine-room", "queueSelector.room": "B1"},
            SelectMessageQueueByMachineRoom("B1"),
        ),
    ],
    ids=["hash", "random", "machine-room"],
)
def test_selectors_have_a_name(given, selector):
    make = write_of(**given).make_selector

    assert make is not None
    assert make() == selector


def test_a_selector_of_ones_own_is_made_in_every_task_of_its_settings():
    given = write_of(queueSelector=OWN, **{"queueselector.shardcount": "8"})

    make = pickle.loads(pickle.dumps(given)).make_selector

    assert make().shard_count == "8"
    assert make() is not make()


def test_a_process_that_lists_no_module_makes_no_selector(monkeypatch):
    make = write_of(queueSelector=OWN, **{"queueselector.shardcount": "8"}).make_selector
    assert make is not None
    monkeypatch.delenv("RMQTOOLS_SPARK_PLUG_INS")

    with pytest.raises(ConfigError, match=r"Set RMQTOOLS_SPARK_PLUG_INS=.* before Spark starts"):
        make()


def test_stamps_are_off_unless_asked_for():
    assert (write_of().stamp, write_of().id_column) == (False, None)
    given = write_of(stamp="TRUE", idColumn="id")
    assert (given.stamp, given.id_column) == (True, "id")
