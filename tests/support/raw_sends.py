"""Messages that our producers do not send: stored batches as Java sends them, and bodies that are broken."""

import uuid
from collections.abc import Sequence

from rmqtools import Admin, MessageQueue
from rmqtools.model.codes import RequestCode
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.headers.send import SendMessageRequestHeaderV2
from rmqtools.protocol.headers.topic import CreateTopicRequestHeader
from rmqtools.protocol.messages.batch import encode_batch
from rmqtools.protocol.wire.command import RemotingCommand, request


def ask(admin: Admin, command: RemotingCommand) -> None:
    """Send a request to broker-a, which must agree."""
    addr = admin.fetch_cluster_info().broker_addr_table["broker-a"].broker_addrs[0]
    admin._bridge.run(lambda: admin._admin._client.remoting.invoke_ok(addr, command))


def topic_header(topic: str, *, attributes: str | None = None) -> CreateTopicRequestHeader:
    """The header of a request that makes a topic with one queue."""
    return CreateTopicRequestHeader(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=1,
        write_queue_nums=1,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        topic_sys_flag=0,
        order=False,
        attributes=attributes,
    )


def create_batch_topic(admin: Admin) -> MessageQueue:
    """The only queue of a new topic with queues of type BatchCQ."""
    topic = f"batches-{uuid.uuid4().hex[:8]}"
    ask(admin, request(topic_header(topic, attributes="+queue.type=BatchCQ")))
    admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, broker_names=["broker-a"])
    return MessageQueue(topic, "broker-a", 0)


def send_batch(admin: Admin, queue: MessageQueue, numbers: Sequence[int]) -> None:
    """A batch as Java's producer sends it: with a unique key of its own, which ours has not.

    Bodies are the numbers; tags are t0, t1 and t2 by turns.
    """
    messages = (encode_batch([(0, b"%d" % number, b"TAGS\x01t%d\x02" % (number % 3))]) for number in numbers)
    unique = f"UNIQ_KEY\x01{uuid.uuid4().hex.upper()}\x02"
    code = RequestCode.SEND_BATCH_MESSAGE
    ask(admin, _send_request(queue, b"".join(messages), properties=unique, code=code))


def send_corrupt(admin: Admin, queue: MessageQueue, body: bytes) -> None:
    """A message that says that its body is compressed; it is not."""
    ask(admin, corrupt_message(queue, body))


def corrupt_message(queue: MessageQueue, body: bytes) -> RemotingCommand:
    """The request that stores such a message."""
    return _send_request(queue, body, sys_flag=COMPRESSED_FLAG)


def _send_request(
    queue: MessageQueue,
    body: bytes,
    *,
    sys_flag: int = 0,
    properties: str = "",
    code: RequestCode = RequestCode.SEND_MESSAGE_V2,
) -> RemotingCommand:
    header = SendMessageRequestHeaderV2(
        producer_group="tests",
        topic=queue.topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=queue.queue_id,
        sys_flag=sys_flag,
        born_timestamp=1,
        flag=0,
        properties=properties,
        reconsume_times=0,
        batch=code is RequestCode.SEND_BATCH_MESSAGE,
        broker_name=queue.broker_name,
    )
    return request(header, body, code=code)
