"""Half messages: decisions, and check-backs for those without one.

Source of the rules: EndTransactionProcessor, TransactionalMessageServiceImpl,
AbstractTransactionalMessageCheckListener (broker 5.5.0).
"""

from dataclasses import replace

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import (
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_ID,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from rmqtools.model.names import CID_RMQ_SYS_PREFIX, HALF_TOPIC
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, request
from rmqtools.testing.fake.commit_log import Entry
from rmqtools.testing.fake.members import Members
from rmqtools.testing.fake.messages import encode_with_body
from rmqtools.testing.fake.sends import Sends
from rmqtools.testing.fake.server import Peer
from rmqtools.testing.fake.state import Handlers, State, refused, succeeded

_CHECKING_GROUP = f"{CID_RMQ_SYS_PREFIX}TRANS"


class Transactions:
    """The undecided half messages of one broker, by commit log offset."""

    def __init__(self, state: State, members: Members, sends: Sends) -> None:
        self._state = state
        self._members = members
        self._sends = sends
        self._open: dict[int, Entry] = {}
        self._ended: set[int] = set()  # decided before their queue showed them (FakeCluster.hide_new)
        self.handlers: Handlers = {RequestCode.END_TRANSACTION: self._end}

    def prepared(self, entry: Entry) -> None:
        """Add a half message that its queue shows, unless it is decided already."""
        if entry.commit_log_offset not in self._ended:
            self._open[entry.commit_log_offset] = entry
        self._commit()

    def messages(self) -> list[MessageExt]:
        """Return the half messages without a decision."""
        return [entry.decode(self._state.name) for entry in self._open.values()]

    def check(self, group: str | None) -> int:
        """Send check-backs to producers now, as a broker does regularly; return their number."""
        return sum(self._ask(entry, group) for entry in [*self._open.values()])

    def _ask(self, entry: Entry, group: str | None) -> bool:
        half = entry.decode(self._state.name, decompress=False)
        owner = half.properties[PROPERTY_PRODUCER_GROUP]
        peer = self._members.producer(owner)
        if peer is None or group not in (None, owner):
            return False
        half = self._written_anew(entry, half)
        unique = half.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        header = CheckTransactionStateRequestHeader(
            topic=HALF_TOPIC,
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.commit_log_offset,
            msg_id=unique,
            transaction_id=unique,
            offset_msg_id=half.offset_msg_id,
        )
        peer.write(encode_command(request(header, encode_with_body(_at_home(half)), oneway=True)))
        return True

    def _written_anew(self, entry: Entry, half: MessageExt) -> MessageExt:
        """Write the half message again at the end of its queue, as every check does."""
        del self._open[entry.commit_log_offset]
        times = int(half.properties.get(PROPERTY_TRANSACTION_CHECK_TIMES, "0")) + 1
        properties = {**half.properties, PROPERTY_TRANSACTION_CHECK_TIMES: str(times)}
        moved = self._state.log.append(replace(half, properties=properties))
        return moved.decode(self._state.name, decompress=False)

    def _end(self, command: RemotingCommand, _: Peer) -> RemotingCommand:
        header = decode_header(EndTransactionRequestHeader, command.ext_fields)
        if header.commit_or_rollback == MessageSysFlag.TRANSACTION_NOT_TYPE:
            return succeeded()
        half = self._state.log.look_up(header.commit_log_offset)
        if half is None or half.topic != HALF_TOPIC:
            return refused(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
        if half.properties.get(PROPERTY_PRODUCER_GROUP) != header.producer_group:
            return refused(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
        if half.queue_offset != header.tran_state_table_offset:
            return refused(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
        if header.commit_or_rollback == MessageSysFlag.TRANSACTION_COMMIT_TYPE:
            self._sends.store(self._committed(half, header.transaction_id or ""))
        if self._open.pop(header.commit_log_offset, None) is None:
            self._ended.add(header.commit_log_offset)
        self._commit()
        return succeeded()

    def _commit(self) -> None:
        """Move the broker's own offset to the first open half message; a real one does so once per check."""
        end = self._state.log.queue(HALF_TOPIC, 0).max_offset
        first = min((entry.queue_offset for entry in self._open.values()), default=end)
        self._state.offsets[_CHECKING_GROUP, HALF_TOPIC, 0] = first

    def _committed(self, half: MessageExt, transaction_id: str) -> MessageExt:
        message = _at_home(half)
        dropped = (PROPERTY_REAL_TOPIC, PROPERTY_REAL_QUEUE_ID)
        properties = {name: value for name, value in half.properties.items() if name not in dropped}
        properties[PROPERTY_TRANSACTION_ID] = transaction_id
        return replace(
            message,
            properties=properties,
            sys_flag=half.sys_flag | MessageSysFlag.TRANSACTION_COMMIT_TYPE,
            prepared_transaction_offset=half.commit_log_offset,
            store_timestamp_ms=self._state.timers.now_ms(),
        )


def _at_home(half: MessageExt) -> MessageExt:
    """Return a half message with its original topic and queue."""
    queue_id = int(half.properties[PROPERTY_REAL_QUEUE_ID])
    return replace(half, topic=half.properties[PROPERTY_REAL_TOPIC], queue_id=queue_id)
