"""Pin a running group to one machine, which then gets all messages, and remove the pin again.

The group has three members, on 10.0.0.1 to 10.0.0.3. Here all run in this process and only use the addresses.

python examples/pinned_consumer.py --name-server 127.0.0.1:9876 --topic Example
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer

from rmqtools import Admin, ClientConfig, ConsumeContext, MessageExt, PushConsumer, PushConsumerConfig
from rmqtools.allocate import AllocateByPins, Pins

PATIENCE = 60.0  # seconds


def ignore(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
    """Acknowledge all messages."""


def member(name_server: str, topic: str, group: str, ip: str) -> PushConsumer:
    """Make a member of the group; all must have the same strategy."""
    config = PushConsumerConfig(name_server=name_server, group=group, client_ip=ip, pin_poll_interval=1.0)
    consumer = PushConsumer(config, strategy=AllocateByPins(when_absent="everybody"))
    consumer.subscribe(topic, ignore)
    return consumer


def show(what: str, topic: str, members: dict[str, PushConsumer], wanted: list[int]) -> None:
    """Wait until the members hold these numbers of queues of the topic, and print them."""
    deadline = time.monotonic() + PATIENCE
    while (held := [_count(one, topic) for one in members.values()]) != wanted:
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: {held} queues, expected {wanted}")
        time.sleep(0.1)
    print(f"{what}: " + ", ".join(f"{ip} has {count}" for ip, count in zip(members, held, strict=True)))


def _count(consumer: PushConsumer, topic: str) -> int:
    return sum(queue.topic == topic for queue in consumer.queues)


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="What to listen to.")] = "Example",
    group: Annotated[str, typer.Option(help="Its members share the queues.")] = "example-pinned",
) -> None:
    """Pin a group to one machine and unpin it."""
    ips = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    members = {ip: member(name_server, topic, group, ip) for ip in ips}
    with Admin(ClientConfig(name_server=name_server)) as admin, ExitStack() as stack:
        count = len(admin.fetch_subscribe_queues(topic))
        fair = [count // 3 + (number < count % 3) for number in range(3)]
        for consumer in members.values():
            stack.enter_context(consumer)
        show("no pins", topic, members, fair)
        admin.set_pins(group, Pins(0, ["10.0.0.2"], set_by="an example"))
        show("pinned to 10.0.0.2", topic, members, [0, count, 0])
        admin.clear_pins(group)
        show("cleared", topic, members, fair)


if __name__ == "__main__":
    typer.run(main)
