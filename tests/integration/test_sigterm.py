"""A service that is stopped by SIGTERM: examples/service_consumer.py, beside another member of its group."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rmqtools import Message
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, new_group, numbers

pytestmark = pytest.mark.broker

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "service_consumer.py"
TAKEN_OVER_WITHIN = 2.0  # seconds


def test_a_service_consumer_ends_at_sigterm_with_its_messages_handled_and_its_queues_taken_over(
    local_cluster, consume, producer, admin, make_topic
):
    topic, group, heard = make_topic(queues=1), new_group(), Heard()
    staying = consume(topic, heard, group=group)

    def owned():
        return [queue for queue in staying.queues if queue.topic == topic]

    wait_until(lambda: len(owned()) == 2)
    arguments = ["--name-server", local_cluster.name_server, "--topic", topic, "--group", group]
    command = [sys.executable, EXAMPLE, *arguments, "--work", "0.5", "--threads", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        wait_until(lambda: len(owned()) == 1)
        (other,) = set(admin.fetch_subscribe_queues(topic)) - set(owned())
        for body in numbers(6):
            producer.send(Message(topic, body), queue=other)
        assert service.stdout is not None
        lines = [service.stdout.readline() for _ in range(3)]
        service.send_signal(signal.SIGTERM)
        lines += service.stdout.readlines()  # until it ends
        wait_until(lambda: len(owned()) == 2, seconds=TAKEN_OVER_WITHIN)

    said = [line.split() for line in lines]
    begun, handled = ([words[1] for words in said if words[0] == verb] for verb in ("begun", "handled"))
    once = [
        words[0] for words in said if words[0] not in ("begun", "handled")
    ]  # messages may begin before "started"
    assert (service.returncode, once, said[-1]) == (0, ["started", "stopping", "stopped"], ["stopped"])
    assert sorted(begun) == sorted(handled)
    heard.wait(6 - len(handled))
    assert sorted([body.decode() for body in heard.bodies] + handled) == [str(number) for number in range(6)]
