"""A reader of the load in a process of its own, so that it can be killed in the middle of a batch.

    python -m tools.measure.faults.member NAME_SERVER TOPIC GROUP SETTINGS

Writes a JSON line for every message, ``{"read": [broker, queue, offset], "body": hex, "key": unique key}``,
and one whenever its queues have changed, ``{"held": [[broker, queue], ...]}``. Commits after every poll.
SETTINGS is a JSON object of settings of the consumer. Ends when its standard input ends.
"""

import asyncio
import json
import sys
from collections.abc import Collection
from typing import Any

from rmqtools import ConsumeFromWhere, MessageQueue, PullConsumerConfig
from rmqtools.aio import PullConsumer


def _say(row: dict[str, Any]) -> None:
    print(json.dumps(row), flush=True)


def _held(topic: str, _: Collection[MessageQueue], own: Collection[MessageQueue]) -> None:
    _say({"held": [[queue.broker_name, queue.queue_id] for queue in own if queue.topic == topic]})


async def _run(name_server: str, topic: str, group: str, settings: dict[str, Any]) -> None:
    config = PullConsumerConfig(
        name_server=name_server,
        group=group,
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        auto_commit=False,
        **settings,
    )
    consumer = PullConsumer(config, message_queue_listener=_held)
    consumer.subscribe(topic)
    stopped = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    async with consumer:
        while not stopped.done():
            messages = await consumer.poll(0.5)
            for message in messages:
                place = [message.broker_name, message.queue_id, message.queue_offset]
                _say({"read": place, "body": message.body.hex(), "key": message.msg_id})
            if messages:
                await consumer.commit()


if __name__ == "__main__":
    name_server, topic, group, settings = sys.argv[1:5]
    asyncio.run(_run(name_server, topic, group, json.loads(settings)))
