"""What rocketmq-client-python's own tests hold, in our words; a program for it, run on it and moved to ours.

    python eight_behaviours.py NAME_SERVER TOPICS GROUPS

TOPICS and GROUPS begin the names of topics and groups. JSON lines: what was seen, one for each behaviour.
It ends by ``_exit``, because the native client can neither close consumers nor end.
"""

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from rocketmq.client import (
    ConsumeStatus,
    Message,
    Producer,
    PushConsumer,
    SendStatus,
    TransactionMQProducer,
    TransactionStatus,
)
from rocketmq.exceptions import PushConsumerStartFailed

NAME_SERVER, TOPICS, GROUPS = sys.argv[1:]
SECONDS = 60


def started(client: "Producer | PushConsumer") -> "Producer | PushConsumer":
    client.set_name_server_address(NAME_SERVER)
    client.start()
    return client


def message_of(topic: str, body: str, keys: str = "keys") -> Message:
    message = Message(f"{TOPICS}-{topic}")
    message.set_body(body)
    message.set_keys(keys)
    message.set_tags(b"tags")
    message.set_property("property", "value")
    return message


def start_without_subscription() -> dict[str, object]:
    try:
        started(PushConsumer(f"{GROUPS}-none"))
    except PushConsumerStartFailed as error:
        return {"raised": type(error).__name__}
    return {}


def consume(answers: "list[ConsumeStatus | None]", topic: str) -> list[dict[str, object]]:
    """A consumer of its own group that answers so, then with success; the rows of what it got."""
    rows: list[dict[str, object]] = []
    done = threading.Event()

    def callback(message: Message) -> ConsumeStatus:
        rows.append(
            {
                "body": message.body.hex(),
                "keys": message.keys.decode(),
                "tags": message.tags.decode(),
                "property": message["property"].decode(),
                "absent": message.get_property("absent").decode(),
                "topic": message.topic.rpartition("-")[2],
                "id": message.id,
                "times": message.reconsume_times,
                "level": message.delay_time_level,
                "types": [
                    type(value).__name__ for value in (message.keys, message.id, message.born_timestamp)
                ],
                "milliseconds": message.store_timestamp // 10**12,
            }
        )
        if len(rows) > len(answers):
            done.set()
            return ConsumeStatus.CONSUME_SUCCESS
        return answers[len(rows) - 1]

    consumer = PushConsumer(f"{GROUPS}-{topic}")
    consumer.subscribe(f"{TOPICS}-{topic}", callback)
    CONSUMERS.append(started(consumer))
    assert done.wait(SECONDS), rows
    return rows


CONSUMERS: list[PushConsumer] = []  # kept: a native consumer that is dropped crashes


def push_consume() -> dict[str, object]:
    sent = PRODUCER.send_sync(message_of("consume", "XXXX"))
    (row,) = consume([], "consume")
    return {**row, "id": row["id"] == sent.msg_id}


def reconsume_later() -> dict[str, object]:
    PRODUCER.send_sync(message_of("later", "XXXX"))
    first, second = consume([ConsumeStatus.RECONSUME_LATER], "later")
    return {"first": first, "second": second, "same": first.pop("id") == second.pop("id")}


def none_is_reconsume_later() -> dict[str, object]:
    PRODUCER.send_sync(message_of("none", "XXXX"))
    first, second = consume([None], "none")
    return {"times": [first["times"], second["times"]]}


def send_sync() -> dict[str, object]:
    result = PRODUCER.send_sync(message_of("send", "sync"))
    status, msg_id, offset = result
    return {
        "status": status,
        "ok": status is SendStatus.OK,
        "id": len(msg_id),
        "offset": type(offset).__name__,
    }


def send_sync_in_threads() -> dict[str, object]:
    with ThreadPoolExecutor(5) as threads:
        results = list(threads.map(PRODUCER.send_sync, [message_of("send", str(n)) for n in range(5)]))
    return {"statuses": [result.status for result in results], "ids": len({one.msg_id for one in results})}


def send_oneway() -> dict[str, object]:
    return {"returned": PRODUCER.send_oneway(message_of("send", "oneway"))}


def send_orderly() -> dict[str, object]:
    producer = started(Producer(f"{GROUPS}-orderly", True))
    results = [
        producer.send_orderly_with_sharding_key(message_of("orderly", str(n)), "order-1") for n in range(4)
    ]
    producer.shutdown()
    return {"statuses": [one.status for one in results], "offsets": [one.offset for one in results]}


def transaction() -> dict[str, object]:
    checked: list[tuple[str, str]] = []
    done = threading.Event()

    def check(message: Message) -> TransactionStatus:
        checked.append((message.body.decode(), message.id))
        done.set()
        return TransactionStatus.COMMIT

    producer = started(TransactionMQProducer(f"{GROUPS}-transaction", check))
    sent = producer.send_message_in_transaction(
        message_of("transaction", "half"), lambda message, arg: TransactionStatus.UNKNOWN, None
    )
    assert done.wait(SECONDS), "no check"
    (row,) = consume([], "transaction")
    producer.shutdown()
    return {
        "status": sent.status,
        "checked": checked[0][0],
        "same": checked[0][1] == sent.msg_id == row["id"],
        "body": row["body"],
    }


PRODUCER = started(Producer(f"{GROUPS}-producer"))
for behaviour in (
    start_without_subscription,
    push_consume,
    reconsume_later,
    none_is_reconsume_later,
    send_sync,
    send_sync_in_threads,
    send_oneway,
    send_orderly,
    transaction,
):
    print(json.dumps({behaviour.__name__: behaviour()}), flush=True)
os._exit(0)
