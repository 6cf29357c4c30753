"""Mirror a share of a topic, and let one of two staging machines have all of it.

python -m examples.staging_mirror.staging --share 0.05
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from rmqtools import (
    Admin,
    ClientConfig,
    ConsumeContext,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Mirror,
    MirrorConfig,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
)
from rmqtools.allocate import AllocateByPins, Pins

IPS = ("10.0.0.1", "10.0.0.2")
PINNED = IPS[1]
ORDERS, CUSTOMERS = 1000, 60
Listener = Callable[[Sequence[MessageExt], ConsumeContext], None]


def main() -> int:
    """Run the recipe; return 1 if another machine than the pinned one got a message."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--group", default=f"staging-mirror-{os.getpid()}")
    asked = parser.parse_args()
    name_server = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
    production, staging = f"orders-{os.getpid()}", f"orders-staging-{os.getpid()}"
    with Admin(ClientConfig(name_server=name_server)) as admin:
        for topic in (production, staging):
            admin.create_topic(topic, read_queue_nums=4, write_queue_nums=4)
        admin.set_pins(asked.group, Pins(0, [PINNED], when_absent="nobody", set_by="an example"))
        send_orders(name_server, production)
        copied = mirror_share(name_server, production, staging, asked.share)
        received = consume(name_server, staging, asked.group, sum(copied.values()))
        admin.clear_pins(asked.group, set_by="an example")
    print(f"copied {sum(copied.values())} of {ORDERS} messages")
    print(", ".join(f"{ip} got {received[ip]}" for ip in IPS))
    return int(received != Counter({PINNED: sum(copied.values())}))


def send_orders(name_server: str, topic: str) -> None:
    """Stand for production: orders of some customers."""
    with Producer(ProducerConfig(name_server=name_server)) as producer:
        producer.send_many(
            [Message(topic, f"order {n}".encode(), keys=f"customer-{n % CUSTOMERS}") for n in range(ORDERS)]
        )


def mirror_share(name_server: str, topic: str, copy: str, share: float) -> Counter[str]:
    """Copy the orders of some customers; return how many of each broker."""
    config = MirrorConfig(
        source=ClientConfig(name_server=name_server),
        target=ProducerConfig(name_server=name_server),
        topics={topic: copy},
        share=share,
        settle_seconds=1.0,  # no mirror of this name has died
    )
    with Mirror(config) as mirror:
        return sum((Counter({each.target.broker_name: each.copied}) for each in mirror.run()), Counter())


def consume(name_server: str, topic: str, group: str, count: int) -> "Counter[str]":
    """Consume with one member for each machine, and return how many messages each of them got."""
    received: Counter[str] = Counter()
    members = []
    for ip in IPS:
        config = PushConsumerConfig(
            name_server=name_server,
            group=group,
            client_ip=ip,
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        member = PushConsumer(config, strategy=AllocateByPins(when_absent="nobody"))
        member.subscribe(topic, counting(received, ip))
        member.start()
        members.append(member)
    deadline = time.monotonic() + 120
    while received.total() < count and time.monotonic() < deadline:
        time.sleep(0.1)
    for member in members:
        member.close()
    return received


def counting(received: "Counter[str]", ip: str) -> Listener:
    """Make the listener of one machine."""

    def listen(messages: Sequence[MessageExt], context: ConsumeContext) -> None:
        received[ip] += len(messages)

    return listen


if __name__ == "__main__":
    sys.exit(main())
