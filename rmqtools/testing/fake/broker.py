"""One broker of a fake cluster: its tables, and the handler of each request."""

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import ResponseCode
from rmqtools.model.names import HALF_TOPIC, REPLY_TOPIC_POSTFIX
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.testing.fake.administration import Administration
from rmqtools.testing.fake.commit_log import CommitLog, Entry, QueueKey
from rmqtools.testing.fake.members import Members
from rmqtools.testing.fake.offsets import Offsets
from rmqtools.testing.fake.pops import Pops
from rmqtools.testing.fake.pulls import Pulls
from rmqtools.testing.fake.replies import Replies
from rmqtools.testing.fake.sends import Sends
from rmqtools.testing.fake.server import Answer, Peer
from rmqtools.testing.fake.state import Handler, Settings, State, refused
from rmqtools.testing.fake.timers import Timers
from rmqtools.testing.fake.topics import TopicConfig, Topics
from rmqtools.testing.fake.transactions import Transactions


class Broker:
    """A master, and the slaves that read its messages."""

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
        self.pops = Pops(self.state)
        self.transactions = Transactions(self.state, self.members, self.sends)
        replies = Replies(self.state, self.members, self.sends)
        rest = (replies, Offsets(self.state), Administration(self.state))
        self._handlers: dict[int, Handler] = {}
        for part in (self.members, self.sends, self.pulls, self.pops, self.transactions, *rest):
            self._handlers.update(part.handlers)

    def handle(self, request: RemotingCommand, peer: Peer) -> Answer:
        """Answer one request; None: the answer comes later."""
        handler = self._handlers.get(request.code)
        if handler is None:
            remark = f" request type {request.code} not supported"
            return refused(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        try:
            return handler(request, peer)
        except ProtocolError as error:
            return refused(ResponseCode.SYSTEM_ERROR, str(error))

    def forget(self, peer: Peer) -> None:
        """Handle the end of a connection."""
        self.members.forget(peer)
        self.pulls.forget(peer)
        self.pops.forget(peer)

    def _appended(self, key: QueueKey, entry: Entry) -> None:
        if key[0] == HALF_TOPIC:
            self.transactions.prepared(entry)
        self.pulls.appended(key, entry)
        self.pops.appended(key)
