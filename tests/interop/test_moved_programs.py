"""rocketmq-client-python and ``rmqtools.compat``: one program on both, with one result."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rmqtools import Admin, ClientConfig
from tests.interop import moved_programs
from tests.interop.moved_programs import Run
from tests.support.native_client import NativeClient
from tests.support.resting import RestingCluster

# In every run: the behaviours of compat in unit/compat, and native clients beside ours (test_native_clients).
pytestmark = [pytest.mark.broker, pytest.mark.slow]

PROGRAMS = Path(moved_programs.__file__).parent
TOPICS = ("consume", "later", "none", "send", "orderly", "transaction", "shop")
CLIENTS = ("native", "compat")
BROKER = {  # asks for transactions and delivers again within seconds
    "transactionCheckInterval": "1000",
    "transactionTimeOut": "500",
    "transactionCheckMax": "100",
    "messageDelayLevel": " ".join(["1s"] * 18),
}


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, dict[str, Run]]]:
    """Both programs on both clients, all at the same time, by client and program."""
    native = NativeClient.installed("rocketmq-client-python")
    with RestingCluster(brokers=1, broker_settings=BROKER) as cluster:
        begun = [_begin(cluster.name_server, name, native if name == "native" else None) for name in CLIENTS]
        yield dict(zip(CLIENTS, begun, strict=True))
        for programs in begun:
            for run in programs.values():
                run.close()


def _begin(name_server: str, name: str, native: NativeClient | None) -> dict[str, Run]:
    prefix = f"test-{name}-{uuid.uuid4().hex[:8]}"
    with Admin(ClientConfig(name_server=name_server)) as admin:
        for topic in TOPICS:
            admin.create_topic(f"{prefix}-{topic}", read_queue_nums=2, write_queue_nums=2)
    groups = f"group-{prefix}"  # not n...: a native consumer of such a group corrupts its heap
    eight = Run(PROGRAMS / "eight_behaviours.py", name_server, prefix, groups, native=native)
    shop = Run(PROGRAMS / "shop.py", name_server, f"{prefix}-shop", groups, native=native)
    return {"eight": eight, "shop": shop}


@pytest.fixture(scope="module", params=CLIENTS)
def seen(request: pytest.FixtureRequest, runs: dict[str, dict[str, Run]]) -> dict[str, Any]:
    """What one client was seen to do, by behaviour."""
    rows = runs[request.param]["eight"].output().splitlines()
    return {name: row for line in rows for name, row in json.loads(line).items()}


CONSUMED = {
    "body": b"XXXX".hex(),
    "keys": "keys",
    "tags": "tags",
    "property": "value",
    "absent": "",
    "times": 0,
    "level": 0,
    "types": ["bytes", "str", "int"],
    "milliseconds": 1,
}


LATER = CONSUMED | {"topic": "later"}
SEEN: dict[str, dict[str, Any]] = {
    "start_without_subscription": {"raised": "PushConsumerStartFailed"},
    "push_consume": CONSUMED | {"topic": "consume", "id": True},
    "reconsume_later": {"first": LATER, "second": LATER | {"times": 1, "level": 3}, "same": True},
    "none_is_reconsume_later": {"times": [0, 1]},
    "send_sync": {"status": 0, "ok": True, "id": 32, "offset": "int"},
    "send_sync_in_threads": {"statuses": [0] * 5, "ids": 5},
    "send_oneway": {"returned": None},
    "send_orderly": {"statuses": [0] * 4, "offsets": [0, 1, 2, 3]},
    "transaction": {"status": 0, "checked": "half", "same": True, "body": b"half".hex()},
}


@pytest.mark.parametrize("behaviour", SEEN)
def test_both_clients_are_seen_to_behave_so(seen, behaviour):
    assert seen[behaviour] == SEEN[behaviour]


def test_a_program_that_moves_by_one_import_prints_the_same(runs):
    text = (PROGRAMS / "shop.py").read_text()
    changed = [
        new
        for old, new in zip(text.split("\n"), moved_programs.moved(text).split("\n"), strict=True)
        if old != new
    ]
    native, compat = (runs[name]["shop"].output() for name in CLIENTS)

    assert changed == [
        "from rmqtools.compat.client import ConsumeStatus, Message, Producer, PushConsumer, SendStatus"
    ]
    assert native == compat
    assert native.splitlines()[-3:] == [
        "paid bob 7 b'order' False",
        "paid cid 55 b'order' True",
        "total 108",
    ]
