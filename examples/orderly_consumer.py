"""Send the steps of some orders and consume them in order: a failed step is repeated before the next one.

python examples/orderly_consumer.py --name-server 127.0.0.1:9876 --topic Example
"""

import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

import typer

from rmqtools import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    Message,
    MessageExt,
    Producer,
    ProducerConfig,
    PushConsumer,
    PushConsumerConfig,
)

STEPS = ("created", "paid", "packed", "sent")


class Listener:
    """Notes the steps of each order; every ``paid`` fails once."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._missing = count
        self.steps: dict[str, list[str]] = defaultdict(list)
        self.is_complete = threading.Event()

    def __call__(self, messages: Sequence[MessageExt], context: ConsumeContext) -> ConsumeOrderlyStatus:
        """Handle messages: several queues at the same time, but one queue's messages one after the other."""
        with self._lock:
            for message in messages:
                order, step = message.keys or "", message.body.decode()
                if step == "paid" and message.reconsume_times == 0:
                    self.steps[order].append("paid?")
                    context.suspend_current_queue_time = 0.2
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
                self.steps[order].append(step)
                self._missing -= 1
        if self._missing == 0:
            self.is_complete.set()
        return ConsumeOrderlyStatus.SUCCESS


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="The topic to send to and to consume.")] = "Example",
    group: Annotated[str, typer.Option(help="Its members share the queues.")] = "example-orderly",
    orders: Annotated[int, typer.Option(min=1, help="How many orders.")] = 3,
) -> None:
    """Send orders, and consume them in order."""
    with Producer(ProducerConfig(name_server=name_server, group="examples")) as producer:
        for step in STEPS:
            for number in range(orders):
                order = f"order-{number}"
                producer.send_orderly(
                    Message(topic, step.encode(), tags="order", keys=order, sharding_key=order)
                )
    listener = Listener(orders * len(STEPS))
    config = PushConsumerConfig(
        name_server=name_server,
        group=group,
        orderly=True,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    consumer = PushConsumer(config)
    consumer.subscribe(topic, listener, tags="order")
    with consumer:
        listener.is_complete.wait(60)
    for order, steps in sorted(listener.steps.items()):
        print(f"{order}: {' '.join(steps)}")


if __name__ == "__main__":
    typer.run(main)
