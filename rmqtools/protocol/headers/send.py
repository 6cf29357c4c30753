"""Headers of sending: messages, transactions, replies, messages sent back, recalls.

Source of the rule: the header classes of the same names (Java client 5.5.0).
"""

from typing import Annotated, ClassVar

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import RequestCode
from rmqtools.model.record import record
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.headers.codec import (
    Header,
    Int32,
    Int64,
    RpcRequestHeader,
    TopicRequestHeader,
    Wire,
)

_ENDS = (
    MessageSysFlag.TRANSACTION_NOT_TYPE,
    MessageSysFlag.TRANSACTION_COMMIT_TYPE,
    MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
)


@record
class SendMessageRequestHeader(TopicRequestHeader):
    """A send with long field names; brokers accept it, clients send the V2 form."""

    code: ClassVar[RequestCode] = RequestCode.SEND_MESSAGE

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    batch: bool | None = None
    max_reconsume_times: Int32 | None = None


@record
class SendMessageRequestHeaderV2(TopicRequestHeader):
    """A send with field names of one letter. ``batch`` needs the code SEND_BATCH_MESSAGE and a batch body."""

    code: ClassVar[RequestCode] = RequestCode.SEND_MESSAGE_V2
    fast: ClassVar[bool] = True

    producer_group: Annotated[str, Wire("a")]
    topic: Annotated[str, Wire("b")]
    default_topic: Annotated[str, Wire("c")]
    default_topic_queue_nums: Annotated[Int32, Wire("d")]
    queue_id: Annotated[Int32, Wire("e")]
    sys_flag: Annotated[Int32, Wire("f")]
    born_timestamp: Annotated[Int64, Wire("g")]
    flag: Annotated[Int32, Wire("h")]
    properties: Annotated[str | None, Wire("i")] = None
    reconsume_times: Annotated[Int32 | None, Wire("j")] = None
    unit_mode: Annotated[bool | None, Wire("k")] = None
    max_reconsume_times: Annotated[Int32 | None, Wire("l")] = None
    batch: Annotated[bool | None, Wire("m")] = None
    broker_name: Annotated[str | None, Wire("n")] = None


@record
class SendMessageResponseHeader(Header):
    """Place of a stored message. A batch has one ``msg_id`` per message, joined with commas."""

    msg_id: str
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None


@record
class ConsumerSendMsgBackRequestHeader(RpcRequestHeader):
    """Send a message back to be consumed later; ``offset`` is its commit log offset."""

    code: ClassVar[RequestCode] = RequestCode.CONSUMER_SEND_MSG_BACK

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None


@record
class EndTransactionRequestHeader(RpcRequestHeader):
    """Commit or roll back a half message; ``commit_or_rollback`` has the transaction bits of a sys flag."""

    code: ClassVar[RequestCode] = RequestCode.END_TRANSACTION

    topic: str | None = None
    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str | None = None

    def check_decoded(self) -> None:
        """See :meth:`Header.check_decoded`."""
        if self.commit_or_rollback not in _ENDS:
            raise ProtocolError(
                f"EndTransactionRequestHeader.commit_or_rollback is {self.commit_or_rollback}"
            )


@record
class CheckTransactionStateRequestHeader(RpcRequestHeader):
    """A broker asks a producer for the state of a transaction; the body is the half message."""

    code: ClassVar[RequestCode] = RequestCode.CHECK_TRANSACTION_STATE

    topic: str | None = None
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None


@record
class ReplyMessageRequestHeader(TopicRequestHeader):
    """A broker forwards a reply to the requesting client (request-reply)."""

    code: ClassVar[RequestCode] = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Int64


@record
class RecallMessageRequestHeader(TopicRequestHeader):
    """Cancel a message that waits for its delivery time."""

    code: ClassVar[RequestCode] = RequestCode.RECALL_MESSAGE

    producer_group: str | None = None
    topic: str
    recall_handle: str


@record
class RecallMessageResponseHeader(Header):
    """The unique key of the cancelled message."""

    msg_id: str
