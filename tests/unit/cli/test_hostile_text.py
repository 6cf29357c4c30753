"""Every command on a terminal, with names, keys, bodies and numbers that others have chosen to do harm."""

import os
import pty
import re
import sys
import threading
import tty

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmqtools import MessageQueue
from rmqtools.cli import app
from rmqtools.cli.printing import warn
from rmqtools.errors import RocketMQError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import SubscriptionData
from rmqtools.model.running_info import ConsumerRunningInfo
from rmqtools.protocol.wire.command import response
from rmqtools.testing import FakeCluster

ATTACKS = {
    "title": "\x1b]0;owned\x07",
    "clear": "\x1b[2J",
    "c1": "\x9b31m",
    "reordered": "\u202eevil\u2066",
    "forged line": "x\r\nerror: all is well",
    "separators": "\u2028\u2029",
    "markup": "[bold red]x[/] [link=http://a]b[/link]",
    "surrogate": "\ud800",
}
OWN_CONTROLS = re.compile(rb"\x1b\[[0-9;]*m")  # colours
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def screen(cluster: FakeCluster, *arguments: str) -> str:
    """Return what a terminal of 200 columns gets from a command, without colours."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    seen = bytearray()
    reader = threading.Thread(target=lambda: seen.extend(b"".join(iter(lambda: _read(master), b""))))
    reader.start()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(slave, "w", encoding="utf-8") as terminal:
        patch.setenv("NAMESRV_ADDR", cluster.name_server)
        patch.setenv("COLUMNS", "200")
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
    return cluster


COMMANDS = [
    ("topic", "list"),
    ("topic", "list", "--stats"),
    ("topic", "list", "--json"),
    ("topic", "describe", "orders"),
    ("topic", "describe", "orders", "--json"),
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
    ("dlq", "list", "--group", "billing"),
    ("broker", "status"),
    ("health",),
]


def join(cluster: FakeCluster, attack: str) -> None:
    report = ConsumerRunningInfo(
        properties={"PROP_CLIENT_VERSION": f"V{attack}", "PROP_RMQTOOLS_LAST_ERROR": attack},
        subscription_set=(SubscriptionData(topic="orders", sub_string=f"s{attack}"),),
    )
    cluster.add_member("billing", f"10.0.0.1@{attack}", report)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_byte_of_a_stranger_acts_on_the_terminal(command):
    for name, attack in ATTACKS.items():
        with hostile(attack) as cluster:
            join(cluster, attack)
            shown = screen(cluster, *command)

        assert not ACTING.search(shown), (name, shown)
        assert not any(line.startswith("error: all is well") for line in shown.splitlines()), name


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
    with hostile(ATTACKS["clear"]) as cluster:
        shown = screen(cluster, "consume", "orders", "--from", "earliest", "--raw")

    assert shown == ATTACKS["clear"] + "\n"


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
