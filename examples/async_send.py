"""Send messages from asyncio, many at the same time.

python examples/async_send.py --name-server 127.0.0.1:9876 --topic Example
"""

import asyncio
from typing import Annotated

import typer

from rmqtools import Message, ProducerConfig
from rmqtools.aio import Producer


def main(
    name_server: Annotated[str, typer.Option(envvar="NAMESRV_ADDR", help="host:port")],
    topic: Annotated[str, typer.Option(help="Where to send; it must exist.")] = "Example",
    count: Annotated[int, typer.Option(min=1, help="How many messages.")] = 100,
) -> None:
    """Send messages on the event loop of this program."""
    asyncio.run(_send(name_server, topic, count))


async def _send(name_server: str, topic: str, count: int) -> None:
    async with Producer(ProducerConfig(name_server=name_server, group="examples")) as producer:
        async with asyncio.TaskGroup() as group:
            sends = [
                group.create_task(producer.send(Message(topic, b"task %d" % number)))
                for number in range(count)
            ]
        stored = {(send.result().queue, send.result().queue_offset) for send in sends}
        print(f"{len(stored)} messages stored in {len({queue for queue, _ in stored})} queues")


if __name__ == "__main__":
    typer.run(main)
