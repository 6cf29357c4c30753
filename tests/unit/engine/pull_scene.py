"""A broker set with queues in memory, for pull consumers: what a real one cannot be made to answer."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable

from rmqtools import aio
from rmqtools.config_consumer import PullConsumerConfig
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.group import ConsumeFromWhere
from rmqtools.model.message import MessageExt
from rmqtools.model.message_const import PROPERTY_TAGS
from rmqtools.model.queue import MessageQueue
from rmqtools.protocol.command import RemotingCommand, response
from rmqtools.protocol.messages import encode_message
from tests.support.scripted_peer import ScriptedPeer

TOPIC, BROKER = "T", "broker-a"
Q0, Q1 = MessageQueue(TOPIC, BROKER, 0), MessageQueue(TOPIC, BROKER, 1)


def stored(topic: str, queue_id: int, offset: int, tags: str | None) -> MessageExt:
    return MessageExt(
        topic=topic,
        queue_id=queue_id,
        queue_offset=offset,
        commit_log_offset=offset * 100,
        body=b"%d" % offset,
        properties={} if tags is None else {PROPERTY_TAGS: tags},
        flag=0,
        sys_flag=0,
        born_timestamp_ms=1,
        born_host="127.0.0.1:1",
        store_timestamp_ms=1000 + offset,
        store_host="127.0.0.1:2",
    )


class BrokerSet:
    """Each queue has the offsets [low, high), but for ``gaps``; a pull at the end is held for ever.

    ``asked`` is what came, by broker id; ``committed`` what is stored of the group, ``updates`` each change.
    """

    def __init__(self, high: int = 100, *, queues: int = 1, low: int = 0, gaps: Iterable[int] = ()) -> None:
        self.high = dict.fromkeys(range(queues), high)
        self.low, self.gaps, self.tags = low, frozenset(gaps), None
        self.suggest = 0
        self.refused: set[int] = set()  # request codes answered by an error
        self.members: list[str] = []
        self.asked: list[tuple[int, RemotingCommand]] = []
        self.committed: dict[int, int] = {}
        self.updates: list[tuple[int, int]] = []
        self.addrs: dict[str, str] = {}
        self.topics: set[str] = set()
        self.name_server = ""
        self.peers: dict[int, ScriptedPeer] = {}

    @contextlib.asynccontextmanager
    async def serving(self, ids: Iterable[int] = (0,)) -> AsyncIterator["BrokerSet"]:
        async with contextlib.AsyncExitStack() as stack:
            for number in ids:
                self.peers[number] = await stack.enter_async_context(ScriptedPeer(self._of(number)).serving())
                self.addrs[str(number)] = self.peers[number].addr
            self.name_server = (await stack.enter_async_context(ScriptedPeer(self._route).serving())).addr
            yield self

    def pulls(self, broker_id: int = 0) -> list[int]:
        return [int(r.ext_fields["queueOffset"] or 0) for r in self.of(RequestCode.PULL_MESSAGE, broker_id)]

    def of(self, code: RequestCode, broker_id: int = 0) -> list[RemotingCommand]:
        return [request for number, request in self.asked if request.code == code and number == broker_id]

    def _of(self, number: int) -> Callable[[RemotingCommand], RemotingCommand | None]:
        def answer(request: RemotingCommand) -> RemotingCommand | None:
            self.asked.append((number, request))
            if request.code in self.refused:
                return response(ResponseCode.SYSTEM_ERROR, 0, remark="scripted")
            handler = _HANDLERS.get(request.code)
            return handler(self, request) if handler else response(0, 0)

        return answer

    def _route(self, request: RemotingCommand) -> RemotingCommand:
        self.topics.add(str(request.ext_fields["topic"]))
        brokers = [{"brokerName": BROKER, "cluster": "C", "brokerAddrs": self.addrs}]
        count = len(self.high)
        numbers = {"readQueueNums": count, "writeQueueNums": count, "perm": 6, "topicSysFlag": 0}
        queues = [{"brokerName": BROKER} | numbers]
        return response(0, 0, body=json.dumps({"brokerDatas": brokers, "queueDatas": queues}).encode())

    def _heartbeat(self, request: RemotingCommand) -> RemotingCommand:
        name = json.loads(request.body)["clientID"]
        self.members = self.members if name in self.members else [*self.members, name]
        return response(0, 0)

    def _list_members(self, request: RemotingCommand) -> RemotingCommand:
        return response(0, 0, body=json.dumps({"consumerIdList": self.members}).encode())

    def _query(self, request: RemotingCommand) -> RemotingCommand:
        offset = self.committed.get(int(request.ext_fields["queueId"] or 0))
        if offset is None:
            return response(ResponseCode.QUERY_NOT_FOUND, 0, remark="scripted")
        return _offset(offset)

    def _update(self, request: RemotingCommand) -> RemotingCommand:
        queue_id, offset = (int(request.ext_fields[name] or 0) for name in ("queueId", "commitOffset"))
        self.committed[queue_id] = offset
        self.updates.append((queue_id, offset))
        return response(0, 0)

    def _max(self, request: RemotingCommand) -> RemotingCommand:
        return _offset(self.high[int(request.ext_fields["queueId"] or 0)])

    def _min(self, request: RemotingCommand) -> RemotingCommand:
        return _offset(self.low)

    def _search(self, request: RemotingCommand) -> RemotingCommand:
        return _offset(int(request.ext_fields["timestamp"] or 0) - 1000)

    def _pull(self, request: RemotingCommand) -> RemotingCommand | None:
        fields = request.ext_fields
        queue_id, offset, count = (int(fields[n] or 0) for n in ("queueId", "queueOffset", "maxMsgNums"))
        high = self.high[queue_id]
        if offset == high:
            return None
        if not self.low <= offset < high:
            return self._pulled(ResponseCode.PULL_OFFSET_MOVED, self.low if offset < self.low else high, b"")
        after = min(offset + count, high)
        body = b"".join(
            encode_message(stored(str(fields["topic"]), queue_id, at, self.tags))
            for at in range(offset, after)
            if at not in self.gaps
        )
        return self._pulled(
            ResponseCode.SUCCESS if body else ResponseCode.PULL_RETRY_IMMEDIATELY, after, body
        )

    def _pulled(self, code: int, after: int, body: bytes) -> RemotingCommand:
        names = ("suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")
        values = map(str, (self.suggest, after, self.low, max(self.high.values())))
        return response(code, 0, ext_fields=dict(zip(names, values, strict=True)), body=body)


def _offset(value: int) -> RemotingCommand:
    return response(0, 0, ext_fields={"offset": str(value)})


_HANDLERS: dict[int, Callable[[BrokerSet, RemotingCommand], RemotingCommand | None]] = {
    RequestCode.HEART_BEAT: BrokerSet._heartbeat,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: BrokerSet._list_members,
    RequestCode.QUERY_CONSUMER_OFFSET: BrokerSet._query,
    RequestCode.UPDATE_CONSUMER_OFFSET: BrokerSet._update,
    RequestCode.GET_MAX_OFFSET: BrokerSet._max,
    RequestCode.GET_MIN_OFFSET: BrokerSet._min,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: BrokerSet._search,
    RequestCode.PULL_MESSAGE: BrokerSet._pull,
}


def config(brokers: BrokerSet, **settings: object) -> PullConsumerConfig:
    given: dict[str, object] = {
        "name_server": brokers.name_server,
        "group": "g",
        "client_ip": "127.0.0.1",
        "request_timeout": 3.0,
        "consume_from": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        "delay_after_error": 0.05,
        "poll_timeout": 5.0,
    }
    return PullConsumerConfig(**(given | settings))  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def reading(brokers: BrokerSet, **settings: object) -> AsyncIterator[aio.PullConsumer]:
    """A started consumer of topic T, subscribed unless ``assign`` names queues."""
    assigned = settings.pop("assign", None)
    ids = settings.pop("ids", (0,))
    async with brokers.serving(ids):  # type: ignore[arg-type]
        consumer = aio.PullConsumer(config(brokers, **settings))
        if assigned is None:
            consumer.subscribe(TOPIC)
        else:
            consumer.assign(assigned)  # type: ignore[arg-type]
        async with consumer:
            yield consumer


async def polled(consumer: aio.PullConsumer, count: int) -> list[int]:
    """The offsets of the next ``count`` messages."""
    offsets: list[int] = []
    while len(offsets) < count:
        messages = await consumer.poll(5, count - len(offsets))
        assert messages, f"only {offsets}"
        offsets += [message.queue_offset for message in messages]
    return offsets
