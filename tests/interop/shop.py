"""A small shop on RocketMQ, written for rocketmq-client-python: python shop.py NAME_SERVER TOPIC GROUPS."""

import os
import sys
import threading

from rocketmq.client import ConsumeStatus, Message, Producer, PushConsumer, SendStatus

NAME_SERVER, TOPIC, GROUPS = sys.argv[1:]
ORDERS = [("ann", 30), ("bob", 7), ("ann", 12), ("cid", 55), ("bob", 3), ("ann", 1)]

lock, all_paid = threading.Lock(), threading.Event()
paid: dict[bytes, tuple[str, int, bytes, bool]] = {}  # by key, as a message may come more than once
refused_once: set[bytes] = set()


def order(customer: str, amount: int, tag: str = "order") -> Message:
    message = Message(TOPIC)
    message.set_tags(tag)
    message.set_keys(f"{customer}-{amount}")
    message.set_property("customer", customer)
    message.set_body(str(amount))
    return message


def pay(message: Message) -> ConsumeStatus:
    customer, amount = message.get_property("customer").decode(), int(message.body)
    with lock:
        if amount > 50 and message.keys not in refused_once:
            refused_once.add(message.keys)
            print("try later:", message.keys.decode())
            return ConsumeStatus.RECONSUME_LATER
        paid[message.keys] = (customer, amount, message.tags, message.keys in refused_once)
        if len(paid) == len(ORDERS):
            all_paid.set()
    return ConsumeStatus.CONSUME_SUCCESS


producer = Producer(GROUPS + "-shop", True)
producer.set_name_server_address(NAME_SERVER)
producer.set_timeout(5000)
producer.start()
for customer, amount in ORDERS:
    result = producer.send_orderly_with_sharding_key(order(customer, amount), customer)
    print("sent", customer, amount, result.status == SendStatus.OK)
producer.send_oneway(order("dan", 9, tag="advertisement"))

consumer = PushConsumer(GROUPS + "-cashier", orderly=False)
consumer.set_name_server_address(NAME_SERVER)
consumer.set_thread_count(2)
consumer.set_message_batch_max_size(1)
consumer.subscribe(TOPIC, pay, "order || refund")
consumer.start()
print("all paid:", all_paid.wait(60))
for line in sorted(paid.values()):
    print("paid", *line)
print("total", sum(amount for _, amount, _, _ in paid.values()))
producer.shutdown()
sys.stdout.flush()
os._exit(0)  # consumer.shutdown() ends the native client with a segmentation fault
