"""Read a topic as a member of a consumer group until no more messages come.

python examples/pull_consumer.py --name-server 127.0.0.1:9876 --topic Example --group example-pull
"""

from collections import Counter
from typing import Annotated

import typer

from rmqtools import ConsumeFromWhere, PullConsumer, PullConsumerConfig


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="What to read.")] = "Example",
    group: Annotated[str, typer.Option(help="Whose offsets are used and kept.")] = "example-pull",
    seconds: Annotated[float, typer.Option(help="How long to wait for more.")] = 2.0,
) -> None:
    """Poll until a poll returns nothing; a second run of the same group reads only new messages."""
    config = PullConsumerConfig(
        name_server=name_server, group=group, consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    found: Counter[str] = Counter()
    with PullConsumer(config) as consumer:
        consumer.subscribe(topic)
        while messages := consumer.poll(seconds, max_messages=1000):
            found.update(f"{message.broker_name} queue {message.queue_id}" for message in messages)
            consumer.commit()
    for queue, count in sorted(found.items()):
        print(f"{queue}: {count} messages")
    print(f"{found.total()} messages in all")


if __name__ == "__main__":
    typer.run(main)
