"""Every command on a terminal, with names, keys, bodies and numbers that others have chosen to do harm."""

import io
import json
import os
import pty
import re
import sys
import tempfile
import threading
import tty
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqtools import Admin, ClientConfig, MessageQueue
from rmqtools.allocate import Pins
from rmqtools.cli import app
from rmqtools.cli.connection import complete_topic
from rmqtools.cli.printing import warn
from rmqtools.cli.root.commands import COMMANDS as ROOT
from rmqtools.cli.root.lazy_group import load
from rmqtools.errors import RocketMQError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import SubscriptionData
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster

pytestmark = pytest.mark.process

TITLE, CLEAR, C1, REORDERED = "\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "\u202eevil\u2066"
FORGED, SEPARATORS, MARKUP = (
    "x\r\nerror: all is well",
    "\u2028\u2029",
    "[bold red]x[/] [link=http://a]b[/link]",
)
ATTACKS = {"all": TITLE + CLEAR + C1 + REORDERED + FORGED + SEPARATORS + MARKUP, "surrogate": "\ud800"}
OWN_CONTROLS = re.compile(rb"\r?\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)")  # colours; a progress bar
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Typed(io.StringIO):
    """Standard input of a user who says yes."""

    def isatty(self) -> bool:
        return True


def screen(cluster: FakeCluster, *arguments: str, folder: str | None = None) -> str:
    """Return what a terminal of 200 columns gets from a command, without colours.

    ``folder``: where a local cluster and a profile file are, if the command is about these; None: a new one.
    """
    with tempfile.TemporaryDirectory() as empty:
        return _screen(cluster, folder or empty, arguments)


def _screen(cluster: FakeCluster, folder: str, arguments: Sequence[str]) -> str:
    master, slave = pty.openpty()
    tty.setraw(slave)
    seen = bytearray()
    reader = threading.Thread(target=lambda: seen.extend(b"".join(iter(lambda: _read(master), b""))))
    reader.start()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(slave, "w", encoding="utf-8") as terminal:
        patch.setenv("NAMESRV_ADDR", cluster.name_server)
        patch.setenv("COLUMNS", "200")
        patch.setenv("RMQTOOLS_CLUSTER_DIR", folder)
        patch.setenv("RMQTOOLS_CONFIG", f"{folder}/config.toml")
        patch.setattr(sys, "stdin", Typed("y\n" * 3))
        patch.setattr(sys, "stdout", terminal)
        patch.setattr(sys, "stderr", terminal)
        try:
            app([*arguments], standalone_mode=False)
        except RocketMQError as error:
            warn(f"error: {error}")
        terminal.flush()
    reader.join(20)
    os.close(master)
    return OWN_CONTROLS.sub(b"", bytes(seen)).decode("utf-8", "surrogateescape")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # the other end is closed
        return b""


def hostile(attack: str, *, born: int = -1, stored: int = 2**62) -> FakeCluster:
    """A cluster on which everything that others choose is an attack; topic and group have plain names."""
    cluster = FakeCluster(brokers=(f"broker{attack}",))
    queue = MessageQueue("orders", f"broker{attack}", 0)
    cluster.create_topic("orders", queues=1)
    cluster.create_topic(f"T{attack}", queues=1)
    text = attack.encode("utf-8", "replace").decode()  # no surrogate can be in a stored message
    cluster.store(
        "orders",
        text.encode(),
        queue=queue,
        tags=f"t{text}",
        properties={"KEYS": f"k {text}", f"p{text}": f"v{text}"},
        born_timestamp_ms=born,
        store_timestamp_ms=stored,
    )
    cluster.create_topic("%DLQ%billing", queues=1)
    cluster.store("%DLQ%billing", text.encode(), tags=f"t{text}", properties={"RETRY_TOPIC": f"o{text}"})
    return cluster


COMMANDS = [
    ("topic", "list"),
    ("topic", "list", "--stats"),
    ("topic", "list", "--json"),
    ("topic", "describe", "orders"),
    ("topic", "describe", "orders", "--json"),
    ("topic", "producers", "orders"),
    ("group", "list"),
    ("group", "show", "billing"),
    ("group", "show", "billing", "--json"),
    ("group", "check", "billing"),
    ("group", "watch", "billing", "--looks", "1"),
    ("consume", "orders", "--from", "earliest"),
    ("consume", "orders", "--from", "earliest", "-f", "%t %b %k %g %p %s\\n"),
    ("consume", "orders", "--from", "earliest", "--format", "json"),
    ("consume", "orders", "--from", "earliest", "--format", "hex"),
    ("message", "get", "orders", "--key", "k"),
    ("message", "get", "orders", "--key", "k", "--json"),
    ("message", "story", "k", "--topic", "orders"),
    ("message", "story", "k", "--topic", "orders", "--json"),
    ("dlq", "list", "--group", "billing"),
    ("dlq", "export", "--group", "billing", "-f", "-"),
    ("dlq", "browse", "--group", "billing"),
    ("dlq", "browse", "--group", "billing", "--json"),
    ("dlq", "replay", "--group", "billing", "--dry-run", "--no-progress"),
    ("dlq", "replay", "--group", "billing", "--no-progress"),
    ("broker", "status"),
    ("broker", "config", "127.0.0.1:9", "-c", "flushDiskType=SYNC_FLUSH"),
    ("broker", "drain", "nowhere", "--yes"),
    ("broker", "undrain", "nowhere"),
    ("health",),
    ("allocate", "-t", "orders", "-s", "AVG", "-g", "billing"),
    ("pin", "show"),
    ("pin", "set", "-g", "billing", "--ip", "10.0.0.1", "--when-absent", "nobody", "--dry-run"),
    ("pin", "set", "-g", "billing", "--ip", "10.0.0.1", "--when-absent", "nobody", "--force"),
    ("pin", "clear", "-g", "billing"),
    ("topic", "create", "fresh"),
    ("topic", "alter", "orders", "--queues", "2", "--attribute", "a=b"),
    ("topic", "delete", "orders"),
    ("group", "reset", "billing", "--topic", "orders", "--to-latest", "--dry-run"),
    ("group", "skip", "billing", "--topic", "orders"),
    ("group", "delete", "billing"),
    ("group", "create", "shipping"),
    ("group", "alter", "billing", "--change", "retry_max_times=3"),
    ("produce", "orders", "--file", __file__),
    ("export",),
    ("diff", os.devnull),
    ("mirror", "run", "orders", "--settle", "0"),
    ("mirror", "groups", "orders", "--group", "billing", "--dry-run"),
    ("profile", "list"),
    ("profile", "show", "staging"),
    ("profile", "use", "staging"),
    ("profile", "create", "other", "-n", "localhost:9876"),
    ("cluster", "status"),
    ("cluster", "stop", "broker-a"),
    ("cluster", "start", "broker-a"),
    ("cluster", "down"),
    ("cluster", "logs", "broker-a"),
]
ELSEWHERE = {
    "cluster up": "starts servers; it prints the same table as cluster status",
    "exporter": "its numbers go to Prometheus, which takes any label: see tests/unit/cli/exporter",
    "spark compile": "prints a path of this machine",
    "spark check": "starts Spark: see the test of its lines in tests/unit/spark_connector/test_doctor.py",
    "top": "paints its own controls: see the tests of its screens in tests/unit/cli/top",
}


def leaves(command: Any, *names: str) -> Iterator[str]:
    """Yield the full names of all commands, as typed after ``rmqtools``."""
    for name, child in getattr(command, "commands", {}).items():
        yield from leaves(child, *names, name)
    if not hasattr(command, "commands"):
        yield " ".join(names)


def test_every_command_is_among_these():
    tried = {" ".join(command) for command in COMMANDS}

    known = [leaf for name, command in ROOT.items() for leaf in leaves(load(name, command), name)]
    missing = [name for name in known if not any(f"{each} ".startswith(f"{name} ") for each in tried)]

    new = sorted({*missing} - ELSEWHERE.keys())
    assert new == [], f"add {new} to COMMANDS, with texts of strangers, or to ELSEWHERE of this file"
    assert sorted(missing) == sorted(ELSEWHERE)


def join(cluster: FakeCluster, attack: str) -> None:
    report = ConsumerRunningInfo(
        properties={"PROP_CLIENT_VERSION": f"V{attack}", "PROP_RMQTOOLS_LAST_ERROR": attack},
        subscription_set=(SubscriptionData(topic="orders", sub_string=f"s{attack}"),),
    )
    cluster.add_member("billing", f"10.0.0.1@{attack}", report)
    with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
        admin.set_pins(
            "billing",
            Pins(0, ["10.0.0.2"], when_absent="nobody", set_by=attack.encode("utf-8", "replace").decode()),
        )


@pytest.fixture
def hostile_folder(tmp_path):
    """Make a folder of a local cluster, with a profile file, in which an attack is."""

    def make(attack: str) -> str:
        text = attack.encode("utf-8", "replace").decode()
        folder = Path(tempfile.mkdtemp(prefix=f"c{text.replace('/', '')}", dir=tmp_path))
        (folder / "broker-a").mkdir()
        (folder / "broker-a" / "server.log").write_text(f"client {text.replace(chr(10), '')} came\n")
        profile = f"[profiles.staging]\nname_server = {json.dumps(text)}\n"
        (folder / "config.toml").write_text(profile)
        return str(folder)

    return make


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_byte_of_a_stranger_acts_on_the_terminal(command, hostile_folder):
    for name, attack in ATTACKS.items():
        with hostile(attack) as cluster:
            join(cluster, attack)
            shown = screen(
                cluster,
                *(word.replace("127.0.0.1:9", cluster.addr(f"broker{attack}")) for word in command),
                folder=hostile_folder(attack),
            )

        assert not ACTING.search(shown), (name, shown)
        assert not any(line.startswith("error: all is well") for line in shown.splitlines()), name


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_byte_of_a_servers_refusal_acts_on_the_terminal(command, hostile_folder):
    for name, attack in ATTACKS.items():
        with FakeCluster() as cluster:
            cluster.fault(answer=response(ResponseCode.SYSTEM_ERROR, 0, remark=f"no: {attack}"), times=None)
            shown = screen(cluster, *command, folder=hostile_folder(attack))

        assert not ACTING.search(shown), (name, shown)
        assert not any(line.startswith("error: all is well") for line in shown.splitlines()), name


def test_a_shell_gets_no_name_that_acts_on_a_terminal():
    with hostile(TITLE) as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NAMESRV_ADDR", cluster.name_server)
        context: Any = SimpleNamespace(params={})

        completed = complete_topic(context, "")

    assert "orders" in completed
    assert not any(name.startswith("T") and name != "TBW102" for name in completed)


@given(
    command=st.sampled_from(COMMANDS),
    attack=st.text(st.characters(codec=None), max_size=20),
    born=st.integers(-(2**63), 2**63 - 1),
    stored=st.integers(-(2**63), 2**63 - 1),
)
@example(command=("message", "get", "orders", "--key", "k"), attack="", born=2**62, stored=-1)
@example(command=("topic", "describe", "orders"), attack="", born=0, stored=2**62)
@example(command=("topic", "list", "--stats"), attack="", born=0, stored=2**62)
@example(command=("topic", "list"), attack="\ud800", born=0, stored=0)
def test_texts_and_numbers_of_strangers_are_shown_whatever_they_are(command, attack, born, stored):
    with hostile(attack, born=born, stored=stored) as cluster:
        join(cluster, attack)

        assert not ACTING.search(screen(cluster, *command))


def test_consume_writes_bytes_as_they_are_where_the_user_asks_for_it():
    with hostile(CLEAR) as cluster:
        shown = screen(cluster, "consume", "orders", "--from", "earliest", "--raw")

    assert shown == CLEAR + "\n"


@pytest.mark.parametrize("options", [(), ("--stats",), ("--json",)])
def test_a_name_that_is_no_unicode_ends_no_list(options):
    with FakeCluster() as cluster:
        cluster.create_topic("orders", queues=1)
        listed = response(ResponseCode.SUCCESS, 0, body=rb'{"topicList":["orders","T\ud800"]}')
        code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
        cluster.fault(code=code, answer=listed, times=None)
        shown = screen(cluster, "topic", "list", *options)

    assert "orders" in shown
    assert r"T\ud800" in shown
    assert "unusable: the name is not valid Unicode" in shown
