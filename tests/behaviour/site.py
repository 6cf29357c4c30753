"""What the tests of both clusters use, and the requests they make."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rmqtools import Admin
from rmqtools.model.codes import ResponseCode
from rmqtools.model.group import ConsumerData, SubscriptionData
from rmqtools.model.message import MessageExt
from rmqtools.model.sys_flag import build_pull_sys_flag
from rmqtools.policy.selectors import java_hash_code
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.group import HeartbeatRequestHeader
from rmqtools.protocol.headers.offset import (
    GetMaxOffsetRequestHeader,
    OffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rmqtools.protocol.headers.pull import PullMessageRequestHeader
from rmqtools.protocol.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rmqtools.protocol.messages.properties import format_properties
from rmqtools.protocol.messages.stored import decode_messages
from rmqtools.protocol.wire.bodies import format_heartbeat
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing import FakeCluster
from tests.behaviour.wire import Wire
from tests.support.patience import PATIENCE


@dataclass
class Site:
    """One cluster; ``fake`` is None where it is a real one."""

    name_server: str
    admin: Admin
    fake: FakeCluster | None
    broker = "broker-a"

    @property
    def addr(self) -> str:
        """The address of its first broker."""
        return self.admin.fetch_cluster_info().broker_addr_table[self.broker].broker_addrs[0]

    def new_topic(self, queues: int = 2) -> str:
        """Make a topic on the first broker."""
        topic = f"test-{uuid.uuid4().hex[:12]}"
        self.admin.create_topic(
            topic, read_queue_nums=queues, write_queue_nums=queues, broker_names=[self.broker]
        )
        return topic


def send_header(topic: str, *, queue_id: int = 0, group: str = "tests", **fields: Any) -> Any:
    """The header of a send; ``properties`` as a mapping."""
    properties = format_properties(fields.pop("properties", {}))
    given: dict[str, Any] = {
        "producer_group": group,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "sys_flag": 0,
        "born_timestamp": int(time.time() * 1000),
        "flag": 0,
    }
    return SendMessageRequestHeaderV2(
        topic=topic, queue_id=queue_id, properties=properties, **(given | fields)
    )


def send(wire: Wire, topic: str, body: bytes = b"body", **fields: Any) -> SendMessageResponseHeader:
    """Send one message, see it stored and readable."""
    answer = wire.ask(send_header(topic, **fields), body)
    assert answer.code == ResponseCode.SUCCESS, answer
    stored = decode_header(SendMessageResponseHeader, answer.ext_fields)
    if stored.queue_offset >= 0 and not fields.get("properties", {}).keys() & {"DELAY", "TRAN_MSG"}:
        until(lambda: max_offset(wire, topic, stored.queue_id) > stored.queue_offset)
    return stored


def max_offset(wire: Wire, topic: str, queue_id: int = 0) -> int:
    return offset_of(wire.ask(GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id)))


def offset_of(answer: RemotingCommand) -> int:
    assert answer.code == ResponseCode.SUCCESS, answer
    return decode_header(OffsetResponseHeader, answer.ext_fields).offset


def pull_header(
    topic: str, offset: int, *, group: str = "tests", tags: str = "*", suspend: float = 0, **fields: Any
) -> PullMessageRequestHeader:
    """The header of a pull; ``suspend``: seconds of long poll."""
    given: dict[str, Any] = {
        "queue_id": 0,
        "max_msg_nums": 32,
        "sys_flag": build_pull_sys_flag(subscription=True, suspend=bool(suspend)),
        "commit_offset": 0,
        "sub_version": 0,
    }
    return PullMessageRequestHeader(
        consumer_group=group,
        topic=topic,
        queue_offset=offset,
        suspend_timeout_millis=int(suspend * 1000),
        subscription=tags,
        expression_type="TAG",
        **(given | fields),
    )


def pull(wire: Wire, topic: str, offset: int = 0, **fields: Any) -> RemotingCommand:
    return wire.ask(pull_header(topic, offset, **fields))


def pulled(wire: Wire, topic: str, offset: int = 0, **fields: Any) -> list[MessageExt]:
    answer = pull(wire, topic, offset, **fields)
    return decode_messages(answer.body) if answer.code == ResponseCode.SUCCESS else []


def next_offset(answer: RemotingCommand) -> tuple[int, int]:
    """An answer's code, and where to read on."""
    return answer.code, int(answer.ext_fields["nextBeginOffset"] or 0)


def consumer_offset(
    wire: Wire, group: str, topic: str, *, queue_id: int = 0, **fields: Any
) -> RemotingCommand:
    header = QueryConsumerOffsetRequestHeader(consumer_group=group, topic=topic, queue_id=queue_id, **fields)
    return wire.ask(header)


def commit(wire: Wire, group: str, topic: str, offset: int) -> RemotingCommand:
    header = UpdateConsumerOffsetRequestHeader(
        consumer_group=group, topic=topic, queue_id=0, commit_offset=offset
    )
    return wire.ask(header)


def heartbeat(
    wire: Wire, client_id: str, group: str, topic: str, tags: str = "*", *, version: int | None = None
) -> RemotingCommand:
    """Say that a client is a member of a consumer group; ``version`` of its subscription: now."""
    codes = () if tags == "*" else (java_hash_code(tags),)
    subscription = SubscriptionData(
        topic=topic,
        sub_string=tags,
        tags_set=() if tags == "*" else (tags,),
        code_set=codes,
        sub_version=int(time.time() * 1000) if version is None else version,
    )
    data = ConsumerData(group_name=group, subscription_data_set=(subscription,))
    return wire.ask(HeartbeatRequestHeader(), format_heartbeat(client_id, (), (data,)))


def producer_heartbeat(wire: Wire, client_id: str, group: str) -> RemotingCommand:
    """Say that a client is a member of a producer group."""
    return wire.ask(HeartbeatRequestHeader(), format_heartbeat(client_id, (group,)))


def until(came: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Ask again and again until the answer is true; it."""
    deadline = time.monotonic() + seconds
    while not (found := came()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
    return found
