"""A pull: its request, and the parsing of the broker's answer."""

from rmqtools.errors import BrokerError, ProtocolError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.frozen import maker_of
from rmqtools.model.group import SUB_ALL
from rmqtools.model.record import record
from rmqtools.model.result import PullResult, PullStatus
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.policy.subscription import TAG
from rmqtools.protocol.headers.codec import Header, Int64, decode_header
from rmqtools.protocol.headers.pull import PullMessageRequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request

LARGEST_OFFSET = 2**63 - 1  # no queue has it: nothing could follow
_pull_result = maker_of(PullResult)
_STATUS_BY_CODE: dict[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MSG,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


def pull_request(
    wire_topic: str,
    queue_id: int,
    offset: int,
    *,
    broker_name: str,
    max_msg_nums: int,
    group: str,
    expression: str = SUB_ALL,
    expression_type: str = TAG,
) -> RemotingCommand:
    """Return a pull answered at once: no long poll, no commit. No expression: all messages."""
    header = PullMessageRequestHeader(
        consumer_group=group,
        topic=wire_topic,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=max_msg_nums,
        sys_flag=PullSysFlag.FLAG_SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription=expression,
        sub_version=0,
        expression_type=expression_type,
        bname=broker_name,
    )
    return request(header)


@record
class _Progress(Header):
    """The fields used of a PullMessageResponseHeader. Few, because every pull's answer is parsed."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None


def parse_pull(answer: RemotingCommand, addr: str) -> PullResult:
    """Parse a broker's answer to a pull.

    Raises:
        BrokerError: a code that is no outcome of a pull.
        ProtocolError: the next offset is one that no queue has.
    """
    status = _STATUS_BY_CODE.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark, addr)
    header = decode_header(_Progress, answer.ext_fields)
    if not 0 <= header.next_begin_offset < LARGEST_OFFSET:
        raise ProtocolError(f"{addr} answered a pull with the next offset {header.next_begin_offset}")
    return _pull_result(
        status,
        header.next_begin_offset,
        header.min_offset,
        header.max_offset,
        header.suggest_which_broker_id,
        answer.body if status is PullStatus.FOUND else b"",
        answer.remark or "",
        header.offset_delta or 0,
    )
