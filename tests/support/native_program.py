"""A producer or a member of a group on a native Python client, as a program of its own.

    python native_program.py PACKAGES LIBRARY send  NAME_SERVER GROUP TOPIC sync|orderly|transaction COUNT
    python native_program.py PACKAGES LIBRARY member NAME_SERVER GROUP TOPIC

PACKAGES is the directory that the client was installed into, LIBRARY the shared library it shall load ("" for
the one it brings). JSON lines on standard output: {body, keys, tags, ...} of every message sent or consumed,
{ready}, {done}. Ends by ``_exit``: the library's own way out hangs or crashes.
"""

import ctypes.util
import json
import os
import sys
import threading
import time
import traceback

TYPE_CHECKING = False  # a type checker takes it as true: typing is not imported at run time
if TYPE_CHECKING:
    from typing import Any

_LOCK = threading.Lock()
_SEND_MS = 30_000  # the library's own 3 s are too short for its first send on a busy machine


def say(**row: object) -> None:
    with _LOCK:
        print(json.dumps(row), flush=True)


def fill(message: "Any", number: int) -> None:
    message.set_body(f"native-{number}")
    message.set_keys(f"key-{number}")
    message.set_tags("native")
    message.set_property("number", str(number))


def set_name_server(client: "Any", name_server: str) -> None:
    if hasattr(client, "set_name_server_address"):
        client.set_name_server_address(name_server)
    else:
        client.set_namesrv_addr(name_server)


def make_producer(api: "Any", group: str, mode: str) -> "Any":
    if mode == "transaction":
        return api.TransactionMQProducer(group, lambda message: api.TransactionStatus.COMMIT)
    if mode == "orderly" and hasattr(api.Producer, "send_orderly_with_sharding_key"):
        return api.Producer(group, True)
    return api.Producer(group)


def send_one(api: "Any", producer: "Any", message: "Any", mode: str, number: int) -> "Any":
    if mode == "transaction":
        return producer.send_message_in_transaction(
            message, lambda half, arg: api.TransactionStatus.COMMIT, None
        )
    if mode == "sync":
        return producer.send_sync(message)
    if hasattr(producer, "send_orderly_with_sharding_key"):
        return producer.send_orderly_with_sharding_key(message, f"sharding-{number % 4}")
    return producer.send_orderly(message, number % 4)


def send_with_route(api: "Any", producer: "Any", message: "Any", mode: str, number: int) -> "Any":
    """Send a message; again, for a while, if the library has no route: then it has sent nothing.

    Its look-up ends after three seconds, which a busy machine may need.
    """
    ends = time.monotonic() + _SEND_MS / 1000
    while True:
        try:
            return send_one(api, producer, message, mode, number)
        except Exception as error:
            if "No route info" not in str(error) or time.monotonic() > ends:
                raise


def send(api: "Any", name_server: str, group: str, topic: str, mode: str, count: str) -> None:
    producer = make_producer(api, group, mode)
    set_name_server(producer, name_server)
    if hasattr(producer, "set_timeout"):
        producer.set_timeout(_SEND_MS)
    producer.start()
    for number in range(int(count)):
        message = api.Message(topic)
        fill(message, number)
        result = send_with_route(api, producer, message, mode, number)
        say(number=number, status=int(result.status), msgId=result.msg_id)
    producer.shutdown()


def member(api: "Any", name_server: str, group: str, topic: str) -> None:
    consumer = api.PushConsumer(group)
    set_name_server(consumer, name_server)

    def consume(message: "Any") -> "Any":
        say(
            body=message.body.hex(),
            keys=message.keys.decode(),
            tags=message.tags.decode(),
            number=message["number"].decode(),
            queueId=message.queue_id,
            queueOffset=message.queue_offset,
            topic=message.topic,
            msgId=message.id,
        )
        return getattr(api, "ConsumeStatus", None) and api.ConsumeStatus.CONSUME_SUCCESS

    consumer.subscribe(topic, consume)
    consumer.start()
    say(ready=True)
    sys.stdin.read()


def main() -> None:
    packages, library, what, *arguments = sys.argv[1:]
    sys.path.insert(0, packages)
    if library:
        ctypes.util.find_library = lambda name: library
    import rocketmq.client as api

    actions: dict[str, Any] = {"send": send, "member": member}
    code = 1
    try:
        actions[what](api, *arguments)
        say(done=True)
        code = 0
    finally:
        if code:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(code)


main()
