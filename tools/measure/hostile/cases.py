"""Hostile inputs: what a name server or broker says, the call it is said to, and how the call must end."""

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig, PushConsumer, PushConsumerConfig
from rmqtools.model.route import BrokerData, QueueData, TopicQueueMapping, TopicRouteData
from rmqtools.protocol.messages.compression import CompressionType
from rmqtools.protocol.wire.body_codec import format_body
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, response
from rmqtools.testing import FakeCluster, RequestCode
from tools.measure.hostile.case import FIRST, MIB, TOPIC, Attack, Case, ended
from tools.measure.hostile.growing import bombs, poll, pop, push, read_arrow, read_messages

# routes


def route(**changes: object) -> Callable[[FakeCluster], Attack]:
    """Answer with a route of these values, and send to its topic."""

    def prepare(cluster: FakeCluster) -> Attack:
        nums = {"read_queue_nums": 1, "write_queue_nums": 1} | {
            name: value for name, value in changes.items() if name.endswith("_nums")
        }
        rest = {name: value for name, value in changes.items() if name not in nums}
        told = TopicRouteData(
            queue_datas=(QueueData("broker-a", perm=6, **nums),),  # type: ignore[arg-type]
            broker_datas=(BrokerData("broker-a", {0: cluster.addr()}),),
            **rest,  # type: ignore[arg-type]
        )
        body = format_body(told)
        cluster.fault(
            code=RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=TOPIC, times=None, answer=response(0, 0, body=body)
        )
        return lambda: send(cluster)

    return prepare


def send(cluster: FakeCluster) -> str:
    """Send one message."""
    with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
        return ended(lambda: producer.send(Message(TOPIC, b"body"), timeout=3))


HUGE = 2**31 - 1
MAPPING = TopicQueueMapping(TOPIC, "broker-a", "__global__", HUGE, 1, curr_id_map={0: 0})


def many_brokers(_: object = None) -> str:
    """Return the configuration of an ordered topic: 1,000 brokers of 65,536 queues each."""
    return ";".join(f"broker-{number}:65536" for number in range(1000))


# JSON


def topic_list(make: Callable[[], bytes]) -> Callable[[FakeCluster], Attack]:
    """Answer with a list of topics, and let an administrator ask for it."""

    def prepare(cluster: FakeCluster) -> Attack:
        answer = response(0, 0, body=make())
        cluster.fault(code=RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, times=None, answer=answer)

        def attack() -> str:
            with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
                return ended(lambda: f"{len(admin.fetch_topic_list())} topics")

        return attack

    return prepare


def route_body(make: Callable[[], bytes]) -> Callable[[FakeCluster], Attack]:
    """Answer with a body that is no route, and send."""

    def prepare(cluster: FakeCluster) -> Attack:
        answer = response(0, 0, body=make())
        cluster.fault(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=TOPIC, times=None, answer=answer)
        return lambda: send(cluster)

    return prepare


def many_topics() -> bytes:
    """Return 15 MB of topics."""
    names = ",".join(f'"topic-{number:054d}"' for number in range(245_000))
    return f'{{"topicList":[{names}]}}'.encode()


def empty_lists() -> bytes:
    """Return 16 MB of empty lists where names of topics belong."""
    return b'{"topicList":[' + b"[]," * 5_200_000 + b"[]]}"


def loose_lists() -> bytes:
    """Return the same in fastjson's form, with a number as key."""
    return b'{0:"a","topicList":[' + b"[]," * 5_200_000 + b"[]]}"


def loose_keys() -> bytes:
    """Return 14 MB of small objects in fastjson's form."""
    return b'{"topicList":[' + b"{0:1}," * 2_400_000 + b"{0:1}]}"


def deep_keys() -> bytes:
    """Return objects as keys of objects, five million deep."""
    return b'{"topicList":' + b"{" * 5_000_000 + b"}:1" * 2_000_000


def big_route() -> bytes:
    """Return a route of 14 MB: the queues of one broker, 160,000 times."""
    data = '{"brokerName":"broker-a","perm":6,"readQueueNums":1,"writeQueueNums":1,"topicSysFlag":0}'
    return f'{{"brokerDatas":[],"queueDatas":[{",".join([data] * 160_000)}]}}'.encode()


# frames


def remark(cluster: FakeCluster) -> Attack:
    """Refuse in 15 MB of words, put together here, so that the cluster keeps no copies."""
    words = b"x" * 15 * MIB

    def answer(request: RemotingCommand) -> bytes:
        head = b'{"code":1,"flag":1,"opaque":%d,"remark":"%b"}' % (request.opaque, words)
        return struct.pack(">II", 4 + len(head), len(head)) + head

    cluster.fault(code=RequestCode.SEND_MESSAGE_V2, times=None, answer=answer)
    return lambda: send(cluster)


def header_fields(cluster: FakeCluster) -> Attack:
    """Answer with a header of 15 MB of empty fields, in the ROCKETMQ form."""
    fields = (struct.pack(">h", 0) + struct.pack(">i", 0)) * (15 * MIB // 6)

    def answer(request: RemotingCommand) -> bytes:
        head = struct.pack(">hbhii", 0, 0, 0, request.opaque, 1) + struct.pack(">ii", 0, len(fields)) + fields
        return struct.pack(">II", 4 + len(head), 1 << 24 | len(head)) + head

    cluster.fault(code=RequestCode.SEND_MESSAGE_V2, times=None, answer=answer)
    return lambda: send(cluster)


def drip(cluster: FakeCluster) -> Attack:
    """Answer byte by byte on the first connection to the broker; serve the next ones well."""
    server = socket.create_server(("127.0.0.1", 0))
    host, port = server.getsockname()[:2]
    broker_host, _, broker_port = cluster.addr().partition(":")
    over = threading.Event()

    def serve_first() -> None:
        first, _ = server.accept()
        in_thread(serve_rest)
        data = struct.pack(">II", 1000, 900) + b"x" * 1000
        with suppress(OSError):
            for at in range(len(data)):
                over.wait(0.05)
                first.sendall(data[at : at + 1])

    def serve_rest() -> None:
        while True:
            one, _ = server.accept()
            other = socket.create_connection((broker_host, int(broker_port)))
            in_thread(relay, one, other)
            in_thread(relay, other, one)

    in_thread(serve_first)
    cluster.announce("broker-a", f"{host}:{port}")

    def attack() -> str:
        with Producer(ProducerConfig(name_server=cluster.name_server)) as producer:
            ends = [ended(lambda: producer.send(Message(TOPIC, b"body"), timeout=3)) for _ in range(12)]
        over.set()
        failed = sum("Error" in end for end in ends)
        return f"{failed if failed > 1 else 'at most one'} of 12 sends failed"

    return attack


def in_thread(work: Callable[..., None], *arguments: object) -> None:
    """Call it in a thread that does not outlive the process."""
    threading.Thread(target=work, args=arguments, daemon=True).start()


def relay(source: socket.socket, sink: socket.socket) -> None:
    """Hand on all bytes of a connection, until either end is closed."""
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)


def flood(code: int, body: bytes = b"", **fields: str) -> Callable[[FakeCluster], Attack]:
    """Let a broker ask a consumer 200,000 times; the consumer's own messages still come."""

    def prepare(cluster: FakeCluster) -> Attack:
        one = RemotingCommand(code, ext_fields=fields, body=body)
        asked = b"".join(encode_command(one, opaque=number) for number in range(1, 20_001))
        heard = threading.Event()
        consumer = PushConsumer(
            PushConsumerConfig(name_server=cluster.name_server, group="g", consume_from=FIRST)
        )
        consumer.subscribe(TOPIC, lambda *_: heard.set())

        def attack() -> str:
            with consumer:
                while not cluster.members("g"):
                    time.sleep(0.01)
                for _ in range(10):
                    cluster.say("broker-a", asked)
                cluster.store(TOPIC, b"body")
                return "heard" if heard.wait(60) else "not heard"

        return attack

    return prepare


CASES: dict[str, Case] = {
    "orderTopicConf 2^31": Case(route(order_topic_conf=f"broker-a:{HUGE}"), "65536"),
    "orderTopicConf 1000 brokers": Case(route(order_topic_conf=many_brokers()), "ProtocolError"),
    "orderTopicConf 2 x 65536": Case(
        route(order_topic_conf=";".join(["broker-a:65536"] * 2)), "INVALID_PARAMETER"
    ),
    "readQueueNums 2^31": Case(route(read_queue_nums=HUGE), "65536"),
    "writeQueueNums 2^31": Case(route(write_queue_nums=HUGE), "65536"),
    "totalQueues 2^31": Case(route(topic_queue_mapping_by_broker={"broker-a": MAPPING}), "65536"),
    "zstd 20 x 128 MiB, read": Case(
        bombs(20, CompressionType.ZSTD, 128 * MIB, read_messages), "BodyTooLargeError"
    ),
    "zstd 20 x 128 MiB, push": Case(bombs(20, CompressionType.ZSTD, 128 * MIB, push), "20 sent back"),
    "zlib 32 x 160 MiB, push": Case(bombs(32, CompressionType.ZLIB, 160 * MIB, push), "32 sent back"),
    "zlib 32 x 16 MiB, push": Case(
        bombs(32, CompressionType.ZLIB, 16 * MIB, push), f"32 messages of {512 * MIB}"
    ),
    "zlib 32 x 16 MiB, poll": Case(
        bombs(32, CompressionType.ZLIB, 16 * MIB, poll), f"32 messages of {512 * MIB}"
    ),
    "zlib 32 x 16 MiB, read": Case(
        bombs(32, CompressionType.ZLIB, 16 * MIB, read_messages), f"32 messages of {512 * MIB}"
    ),
    "zlib 32 x 16 MiB, Arrow": Case(
        bombs(32, CompressionType.ZLIB, 16 * MIB, read_arrow), f"32 messages of {512 * MIB}"
    ),
    "pop of 20,000": Case(pop, "1 acknowledged"),
    "16 MB of topics": Case(topic_list(many_topics), "245000 topics"),
    "16 MB of []": Case(topic_list(empty_lists), "ProtocolError"),
    "16 MB of [], loose": Case(topic_list(loose_lists), "ProtocolError"),
    "16 MB of {0:1}": Case(topic_list(loose_keys), "ProtocolError"),
    "11 MB nested": Case(topic_list(deep_keys), "ProtocolError"),
    "14 MB route": Case(route_body(big_route), "ProtocolError"),
    "remark of 15 MB": Case(remark, "UnknownOutcomeError of 3"),
    "header of 2.6 million fields": Case(header_fields, "Error"),
    "one byte per 50 ms": Case(drip, "at most one of 12", 12.0),
    "200,000 ids changed": Case(
        flood(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, consumerGroup="g"), "heard", 12.0
    ),
    "200,000 running infos": Case(
        flood(RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup="g", clientId="c", jstackEnable="true"),
        "heard",
        12.0,
    ),
}
