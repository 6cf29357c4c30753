"""One broker of a fake cluster: its tables, and the handler of each request."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message_const import PROPERTY_MESSAGE_REPLY_TO_CLIENT, PROPERTY_PUSH_REPLY_TIME
from rmqtools.model.names import HALF_TOPIC, REPLY_TOPIC_POSTFIX
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.send import ReplyMessageRequestHeader, SendMessageRequestHeaderV2
from rmqtools.protocol.messages.properties import format_properties, parse_properties
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, request
from rmqtools.testing.fake.administration import Administration
from rmqtools.testing.fake.commit_log import CommitLog, Entry, QueueKey
from rmqtools.testing.fake.members import Members
from rmqtools.testing.fake.offsets import Offsets
from rmqtools.testing.fake.pops import Pops
from rmqtools.testing.fake.pulls import Pulls
from rmqtools.testing.fake.sends import Sends
from rmqtools.testing.fake.server import Answer, Peer
from rmqtools.testing.fake.state import Handler, Handlers, Settings, State, refused
from rmqtools.testing.fake.timers import Timers
from rmqtools.testing.fake.topics import TopicConfig, Topics
from rmqtools.testing.fake.transactions import Transactions


class Replies:
    """Pushes replies to the requesting clients, and stores them.

    Source of the rules: ReplyMessageProcessor (broker 5.5.0). There the answer waits until the client has
    accepted the reply.
    """

    def __init__(self, state: State, members: Members, sends: Sends) -> None:
        self._state = state
        self._members = members
        self._sends = sends
        self.handlers: Handlers = {RequestCode.SEND_REPLY_MESSAGE_V2: self._reply}

    def _reply(self, command: RemotingCommand, peer: Peer) -> RemotingCommand:
        header = decode_header(SendMessageRequestHeaderV2, command.ext_fields)
        properties = parse_properties(header.properties)
        client_id = properties.get(PROPERTY_MESSAGE_REPLY_TO_CLIENT, "")
        asker = self._members.client(client_id)
        answer = self._sends.send(command, peer)
        if answer.code != ResponseCode.SUCCESS:
            return answer
        if asker is None:
            remark = f"push reply message fail, channel of <{client_id}> not found."
            return refused(ResponseCode.SYSTEM_ERROR, remark)
        asker.write(encode_command(self._push(header, properties, command.body, peer)))
        return answer

    def _push(
        self, header: SendMessageRequestHeaderV2, properties: dict[str, str], body: bytes, peer: Peer
    ) -> RemotingCommand:
        now_ms = self._state.timers.now_ms()
        pushed = ReplyMessageRequestHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=format_properties({**properties, PROPERTY_PUSH_REPLY_TIME: str(now_ms)}),
            reconsume_times=header.reconsume_times,
            born_host=peer.addr,
            store_host=self._state.addr,
            store_timestamp=now_ms,
        )
        return request(pushed, body)


class Broker:
    """A master."""

    def __init__(self, name: str, cluster: str, settings: Settings, timers: Timers) -> None:
        log = CommitLog(name, settings.max_bytes, self._appended)
        topics = Topics(auto_create=settings.auto_create_topics)
        topics.put(f"{cluster}_{REPLY_TOPIC_POSTFIX}", TopicConfig(1, 1))
        self.state = State(
            name=name, cluster=cluster, settings=settings, timers=timers, topics=topics, log=log
        )
        self.members = Members(self.state)
        self.sends = Sends(self.state)
        self.pulls = Pulls(self.state, self.members)
        self.all_pulls = [self.pulls]  # the slaves' too
        self.pops = Pops(self.state)
        self.transactions = Transactions(self.state, self.members, self.sends)
        replies = Replies(self.state, self.members, self.sends)
        rest = (replies, Offsets(self.state), Administration(self.state))
        self._handlers: dict[int, Handler] = {}
        for part in (self.members, self.sends, self.pulls, self.pops, self.transactions, *rest):
            self._handlers.update(part.handlers)

    def handle(self, request: RemotingCommand, peer: Peer) -> Answer:
        """Answer one request; None: the answer comes later."""
        return _handled(self._handlers, request, peer)

    def slave(self, is_master_up: Callable[[], bool]) -> "Slave":
        """Return a new slave; ``is_master_up`` is called at each request."""
        made = Slave(self, self._handlers, is_master_up)
        self.all_pulls.append(made.pulls)
        return made

    def forget(self, peer: Peer) -> None:
        """Handle the end of a connection."""
        self.members.forget(peer)
        self.pulls.forget(peer)
        self.pops.forget(peer)

    def _appended(self, key: QueueKey, entry: Entry) -> None:
        if key[0] == HALF_TOPIC:
            self.transactions.prepared(entry)
        for pulls in self.all_pulls:
            pulls.appended(key, entry)
        self.pops.appended(key)


class Slave:
    """A slave: its master's messages, topics and groups at once; members and offsets of its own.

    While the master runs, the slave takes the master's offsets; its own never go to the master.
    Source of the rules: SlaveSynchronize, SendMessageProcessor.rejectRequest, EndTransactionProcessor,
    BrokerController.isSpecialServiceRunning (broker 5.5.0).
    """

    def __init__(
        self, master: Broker, handlers: Mapping[int, Handler], is_master_up: Callable[[], bool]
    ) -> None:
        self._master = master
        self._is_master_up = is_master_up
        self.state = replace(master.state, offsets={}, resets={}, is_slave=True)
        self.members = Members(self.state)
        self.pulls = Pulls(self.state, self.members)
        self._handlers: dict[int, Handler] = {**handlers}
        for part in (self.members, self.pulls, Offsets(self.state), Administration(self.state)):
            self._handlers.update(part.handlers)
        self._handlers.update(dict.fromkeys(master.sends.handlers, _refuse_send))
        self._handlers[RequestCode.END_TRANSACTION] = _refuse_end

    def handle(self, request: RemotingCommand, peer: Peer) -> Answer:
        """See :meth:`Broker.handle`."""
        if self._is_master_up():
            self.state.offsets.update(self._master.state.offsets)
        return _handled(self._handlers, request, peer)

    def forget(self, peer: Peer) -> None:
        """See :meth:`Broker.forget`."""
        self.members.forget(peer)
        self.pulls.forget(peer)


def _refuse_send(_request: RemotingCommand, _: Peer) -> RemotingCommand:
    return refused(ResponseCode.SYSTEM_BUSY, "[REJECTREQUEST]system busy, start flow control for a while")


def _refuse_end(_request: RemotingCommand, _: Peer) -> RemotingCommand:
    return refused(ResponseCode.SLAVE_NOT_AVAILABLE, "")


def _handled(handlers: Mapping[int, Handler], request: RemotingCommand, peer: Peer) -> Answer:
    handler = handlers.get(request.code)
    if handler is None:
        remark = f" request type {request.code} not supported"
        return refused(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
    try:
        return handler(request, peer)
    except ProtocolError as error:
        return refused(ResponseCode.SYSTEM_ERROR, str(error))
