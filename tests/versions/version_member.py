"""A member of a group, run by the packages of any version; it uses what all versions have.

    python version_member.py KIND NAME_SERVER GROUP TOPIC [FILE]

KIND: push, orderly, pull, broadcasting (FILE: its offsets) or once (FILE: its database). It prints a JSON
line for each message, and leaves the group when its standard input ends.
"""

import json
import sys
import threading
import time
from typing import Any

import rmqtools
from rmqtools import PullConsumer, PullConsumerConfig, PushConsumer, PushConsumerConfig

_lock = threading.Lock()


def say(**values: object) -> None:
    """Print a JSON line."""
    with _lock:
        print(json.dumps(values), flush=True)


def listen(messages: Any, context: Any) -> None:
    """Print a line for each message."""
    for message in messages:
        began = time.monotonic()
        say(
            queue=f"{message.broker_name}-{message.queue_id}",
            offset=message.queue_offset,
            body=message.body.decode(),
            began=began,
            ended=time.monotonic(),
        )


def end_with_input(ended: threading.Event) -> None:
    """Wait until the standard input ends."""
    sys.stdin.read()
    ended.set()


def main(kind: str, name_server: str, group: str, topic: str, *more: str) -> None:
    """Run the member."""
    settings: dict[str, Any] = {
        "name_server": name_server,
        "group": group,
        "consume_from": "CONSUME_FROM_FIRST_OFFSET",
        "heartbeat_broker_interval": 1.0,
        "poll_name_server_interval": 1.0,
        "rebalance_interval": 2.0,
    }
    if kind == "pull":
        with PullConsumer(PullConsumerConfig(**settings)) as consumer:
            consumer.subscribe(topic)
            say(started=rmqtools.__file__)
            ended = threading.Event()
            threading.Thread(target=end_with_input, args=(ended,), daemon=True).start()
            while not ended.is_set():
                listen(consumer.poll(timeout=0.2), None)
        return
    if kind == "broadcasting":
        settings |= {"message_model": "BROADCASTING", "offset_store_path": more[0]}
    listener: Any = listen
    if kind == "once":
        import sqlalchemy as sa

        from rmqtools.once import SqlStore, deduplicate

        store = SqlStore(sa.create_engine(f"sqlite:///{more[0]}"), group="once")
        store.create_table()
        listener = deduplicate(store, lambda messages, context, connection: listen(messages, context))
    member = PushConsumer(PushConsumerConfig(orderly=kind == "orderly", **settings))
    member.subscribe(topic, listener)
    with member:
        say(started=rmqtools.__file__)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
