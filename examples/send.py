"""Send one message, then many at once, and wait until brokers have stored them.

python examples/send.py --name-server 127.0.0.1:9876 --topic Example
"""

from collections import Counter
from typing import Annotated

import typer

from rmqtools import Message, Producer, ProducerConfig


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="Where to send; it must exist.")] = "Example",
    count: Annotated[int, typer.Option(min=1, help="How many to send at once.")] = 10_000,
) -> None:
    """Send messages from blocking code."""
    with Producer(ProducerConfig(name_server=name_server, group="examples")) as producer:
        message = Message(topic, b"hello", tags="greeting", keys=["order-1"], properties={"colour": "blue"})
        one = producer.send(message)
        print(f"{one.status.value}: {one.queue.broker_name} queue {one.queue.queue_id} as {one.msg_id}")

        results = producer.send_many([Message(topic, b"number %d" % number) for number in range(count)])
        for broker_name, sent in sorted(Counter(result.queue.broker_name for result in results).items()):
            print(f"{broker_name}: {sent} messages")


if __name__ == "__main__":
    typer.run(main)
