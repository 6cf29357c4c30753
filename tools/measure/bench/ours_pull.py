"""A pull consumer with its own settings: how fast polls, or an iteration, go through a backlog."""

from typing import Any

from rmqtools import ConsumeFromWhere, PullConsumer, PullConsumerConfig
from tools.measure.bench.ours_push import Arrivals


def poll(name_server: str, work: dict[str, str]) -> dict[str, Any]:
    """From the first message handed out to the last, by polls or iteration; a group of its own each time."""
    arrivals = Arrivals(int(work["total"]))
    config = PullConsumerConfig(
        name_server=name_server,
        group=work["group"],
        instance_name=work["group"],
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        poll_batch_size=int(work["batch"]),
    )
    with PullConsumer(config) as consumer:
        consumer.subscribe(work["topic"])
        if work["by"] == "iteration":
            for message in consumer:
                if arrivals.note([message]):
                    break
        else:
            while not arrivals.note(consumer.poll()):
                pass
    return arrivals.result()
