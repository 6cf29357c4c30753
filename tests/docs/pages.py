"""What the pages need around their blocks to run: before the first one, and after the last."""

ADDRESS = "127.0.0.1:9876"  # stands for the cluster on all pages
SLOW = {
    "tutorial.md",
    "spark.md",
    "spark-jobs.md",
    "spark-pipeline.md",
    "spark-readers.md",
    "mirror.md",
    "kafka.md",
}  # Spark, clusters, waits
WITH_PACKAGES = {"arrow.md": ("duckdb", "polars")}  # installed for the page
WITH_TIMER_WHEEL = {"receive.md"}  # brokers that pop
WITH_PYTEST = {"testing.md"}  # blocks are test files
WITH_JARS = {"spark-recipes.md"}  # jars of others for Spark: tests/spark/test_recipes.py
WITH_FRAMEWORKS = {"frameworks.md"}  # blocks are files of services: test_frameworks.py

_WAIT = """
from tests.support.cluster_scene import wait_until
"""
BEFORE = {
    "index.md": """
input = print
""",
    "arrow.md": """
from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
values = [b'{"amount": %d}' % n for n in range(5)]
with Producer(ProducerConfig(name_server="127.0.0.1:9876")) as producer:
    sent = [producer.send(Message("Orders", body, tags="new", keys=f"k{n}")) for n, body in enumerate(values)]
with Admin(ClientConfig(name_server="127.0.0.1:9876")) as admin:
    admin.await_readable({result.queue: result.queue_offset + 1 for result in sent}, timeout=PATIENCE)
""",
    "receive.md": """
from rmqtools import Message, Producer, ProducerConfig
with Producer(ProducerConfig(name_server="127.0.0.1:9876")) as producer:
    producer.send(Message("Orders", b"to receive"))
""",
    "consume.md": """
from rmqtools import Message, Producer, ProducerConfig
with Producer(ProducerConfig(name_server="127.0.0.1:9876")) as producer:
    producer.send(Message("Orders", b"to consume"))
""",
    "mirror.md": """
from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
with Producer(ProducerConfig(name_server="127.0.0.1:9876")) as producer:
    producer.send(Message("Orders", b"to copy"))
with Admin(ClientConfig(name_server="127.0.0.1:9876")) as admin:
    for topic, queues in (("OrdersCopy", 4), ("Ledger", 1), ("Decisions", 1)):
        names = None if queues > 1 else ["broker-a"]
        admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues, broker_names=names)
    for queue in admin.fetch_subscribe_queues("Orders"):
        admin.update_consumer_offset("mirrored", queue, 0)
""",
    "spark-pipeline.md": """
from rmqtools import Admin, ClientConfig
with Admin(ClientConfig(name_server="127.0.0.1:9876")) as admin:
    for topic in ("OrderTotals", "OrdersRejected"):
        admin.create_topic(topic)
""",
    "migrating.md": """
import sys
import rmqtools.compat.client, rmqtools.compat.exceptions  # in place of the native client
sys.modules["rocketmq"] = sys.modules["rmqtools.compat"]
sys.modules["rocketmq.client"] = sys.modules["rmqtools.compat.client"]
sys.modules["rocketmq.exceptions"] = sys.modules["rmqtools.compat.exceptions"]
""",
    "observe.md": """
from rmqtools import Message, Producer, ProducerConfig
""",
    "once.md": """
import fakeredis, redis
redis.Redis = fakeredis.FakeRedis
""",
}
AFTER = {
    "spark-pipeline.md": """
consumer.close()
spark.stop()
""",
    "arrow.md": """
assert dict(row[:2] for row in by_tag)["new"] >= 5, by_tag  # other pages send to the topic too
assert len(frame) == sum(row[1] for row in by_tag)
assert {"k0", "k4"} <= set(table["keys"])
assert len(bodies) <= 10
assert {(n,) for n in range(5)} <= set(amounts), amounts
""",
    "consume.md": """
assert messages
""",
    "receive.md": """
assert [message.body for message in messages] == [b"to receive"]
""",
    "mirror.md": """
assert sum(each.copied for each in copied) > 0
assert appender.last_position == 2
assert decision.is_ours
assert (done.rows, done.copied, done.is_first) == (10, 10, True)
""",
    "index.md": """
assert result.status.value == "SEND_OK"
""",
    "observe.md": """
from urllib.request import urlopen
with Producer(ProducerConfig(name_server="127.0.0.1:9876")) as producer:
    producer.send(Message("Orders", b"observed"))
shown = urlopen(f"http://127.0.0.1:{server.server_port}/metrics").read().decode()
assert 'rmqtools_send_outcome="stored"' in shown, shown
assert "messaging_client_sent_messages_total{" in shown
server.shutdown()
thread.join()
tracers.shutdown()
""",
    "once.md": _WAIT
    + """
def booked():
    with engine.connect() as connection:
        return list(connection.scalars(sa.select(payments.c.body)))
wait_until(lambda: b"order 1" in booked())
consumer.close()
engine.dispose()
""",
    "send.md": """
assert len(results) == 1000
""",
    "spark.md": """
import shutil

from tests.support.patience import PATIENCE
for query in spark.streams.active:
    query.stop()
shutil.rmtree(checkpoints, ignore_errors=True)
spark.stop()
""",
    "tutorial.md": """
assert count == 1000
assert len(bodies) == 1000
""",
}
REPLACED = {
    "mirror.md": {
        "10.0.1.5:": "127.0.0.1:",
        "topic create Orders ": "topic create OrdersCopy2 ",
        "mirror run Orders ": "mirror run Orders=OrdersCopy2 ",
        "mirror groups Orders ": "mirror groups Orders=OrdersCopy2 ",
        " --follow": " --settle 0",
        "--group billing": "--group mirrored",
    },
    "observe.md": {"start_http_server(9464": "start_http_server(0"},
    "pin.md": {"192.168.0.6": "127.0.0.1"},
}
