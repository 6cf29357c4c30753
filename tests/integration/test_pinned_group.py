"""One machine gets all messages of a group: pins set and cleared while members on four addresses consume."""

import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from rmqtools import (
    Admin,
    ClientConfig,
    ConsumeContext,
    ConsumeFromWhere,
    Message,
    MessageExt,
    MessageQueue,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.allocate import AllocateByPins
from tests.support.cluster_scene import wait_until
from tests.support.command_line import rmqtools

pytestmark = pytest.mark.broker

IPS = [f"127.0.0.{number}" for number in (11, 12, 13, 14)]
FOLLOWED_WITHIN = 60.0  # seconds until all members follow a changed pin


class PinnedGroup:
    """Four members on four addresses of this machine, and who consumed what."""

    def __init__(self, name_server: str, topic: str, when_absent: str) -> None:
        self.name = f"staging-{uuid.uuid4().hex[:12]}"
        self.topic = topic
        self.name_server = name_server
        self.consumed: Counter[str] = Counter()
        self.members = {ip: self._member(ip, when_absent) for ip in IPS}
        self._lock = threading.Lock()

    @property
    def shares(self) -> dict[str, int]:
        """How many queues of the topic each member holds."""
        return {
            ip: sum(queue.topic == self.topic for queue in member.queues)
            for ip, member in self.members.items()
        }

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``rmqtools`` against the cluster."""
        return rmqtools(*arguments, "--name-server", self.name_server)

    def pin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``rmqtools pin set`` for the group."""
        allowed = ("--allowed-groups", "staging-*")
        return self.command("pin", "set", "--group", self.name, *allowed, *arguments)

    def client_ids(self) -> list[str]:
        """All members as the brokers know them."""
        with Admin(ClientConfig(name_server=self.name_server)) as admin:
            return admin.fetch_consumer_ids(self.name)

    def await_shares(self, *counts: int) -> None:
        """Wait until the members, by address, hold so many queues."""
        wait_until(lambda: list(self.shares.values()) == list(counts), seconds=FOLLOWED_WITHIN)

    def __enter__(self) -> "PinnedGroup":
        for member in self.members.values():
            member.start()
        self.await_shares(2, 2, 2, 2)
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            member.close()

    def _member(self, ip: str, when_absent: Any) -> PushConsumer:
        settings = PushConsumerConfig(
            name_server=self.name_server,
            group=self.name,
            client_ip=ip,
            pin_poll_interval=0.2,
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        member = PushConsumer(settings, strategy=AllocateByPins(when_absent=when_absent))

        def listen(messages: Sequence[MessageExt], _: ConsumeContext) -> None:
            with self._lock:
                self.consumed[ip] += len(messages)

        member.subscribe(self.topic, listen)
        return member


@pytest.fixture
def make_group(local_cluster, make_topic) -> Callable[[str], PinnedGroup]:
    def make(when_absent: str) -> PinnedGroup:
        return PinnedGroup(local_cluster.name_server, make_topic(queues=4), when_absent)

    return make


def test_only_the_pinned_machine_consumes_until_the_pin_is_cleared(make_group, producer):
    with make_group("nobody") as group:
        began = time.monotonic()
        done = group.pin("--ip", "127.0.0.12", "--when-absent", "nobody")
        assert done.returncode == 0, done.stderr
        group.await_shares(0, 8, 0, 0)
        print(f"the group followed the pin {time.monotonic() - began:.1f} s after the command was called")

        producer.send_many([Message(group.topic, b"%d" % number) for number in range(200)])
        wait_until(lambda: group.consumed["127.0.0.12"] == 200)
        assert group.consumed == {"127.0.0.12": 200}

        assert group.command("pin", "clear", "--group", group.name).returncode == 0
        group.await_shares(2, 2, 2, 2)


def test_a_newcomer_knows_the_pin_before_it_takes_a_queue(make_group):
    taken: list[Collection[MessageQueue]] = []
    with make_group("nobody") as group:
        group.pin("--ip", "127.0.0.12", "--when-absent", "nobody")
        group.await_shares(0, 8, 0, 0)
        late = PushConsumer(
            PushConsumerConfig(name_server=group.name_server, group=group.name, client_ip="127.0.0.15"),
            strategy=AllocateByPins(when_absent="everybody"),
            message_queue_listener=lambda topic, all_queues, mine: taken.append(mine),
        )
        late.subscribe(group.topic, lambda messages, context: None)
        with late:
            wait_until(lambda: late.client_id in group.client_ids())
            assert [queue for queue in late.queues if queue.topic == group.topic] == []
        assert taken == []
