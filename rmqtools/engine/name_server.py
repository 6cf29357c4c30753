"""Questions to the name servers: the first that answers is asked until it fails."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from rmqtools.engine.lookup import look_up
from rmqtools.engine.remoting import Remoting
from rmqtools.errors import BrokerError, RemotingConnectError, RemotingError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.route import ClusterInfo, TopicRouteData
from rmqtools.protocol.bodies import parse_cluster_info, parse_topic_list, parse_topic_route
from rmqtools.protocol.command import RemotingCommand, request
from rmqtools.protocol.headers import GetRouteInfoRequestHeader

log = get_logger(__name__)
T = TypeVar("T")


class NameServerClient:
    """Asks one name server of several, and another when that one does not answer.

    Source of the rule: NettyRemotingClient.getAndCreateNameserverChannel (Java client).
    """

    def __init__(self, remoting: Remoting, addrs: Sequence[str], *, first: int, timeout: float) -> None:
        self._remoting = remoting
        self._addrs = list(addrs)
        self._chosen = first % len(self._addrs)
        self._timeout = timeout
        self._silent: dict[str, RemotingError] = {}  # those that did not answer when last asked

    @property
    def last_failure(self) -> RemotingError | None:
        """Why some name server did not answer when it was last asked; None: all did."""
        return next(reversed(self._silent.values()), None)

    @property
    def addrs(self) -> tuple[str, ...]:
        """All name servers, in the order given."""
        return tuple(self._addrs)

    async def fetch_route(self, topic: str) -> TopicRouteData:
        """Ask where a topic is.

        Raises:
            TopicNotFoundError: the name server knows no such topic.
            RemotingError: no name server answered within the timeout; the text names each.
        """
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        try:
            return parse_topic_route((await self.ask(request(header))).body)
        except BrokerError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                raise TopicNotFoundError(f"topic {topic!r} has no route: {error}") from error
            raise

    async def fetch_cluster_info(self) -> ClusterInfo:
        """Ask which brokers there are."""
        return parse_cluster_info((await self.ask(RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO))).body)

    async def fetch_topic_list(self) -> tuple[str, ...]:
        """Ask for the names of all topics, system topics included."""
        answer = await self.ask(RemotingCommand(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER))
        return parse_topic_list(answer.body)

    async def ask(self, command: RemotingCommand) -> RemotingCommand:
        """Send a request to the chosen name server, to the others when it does not answer."""
        return await look_up(lambda: self._ask_each(command), timeout=self._timeout)

    async def tell_each(self, call: Callable[[str], Awaitable[T]]) -> dict[str, T]:
        """Call ``call(addr)`` for every name server: each keeps its own copy of what it is told."""
        return {addr: await call(addr) for addr in self._addrs}

    async def _ask_each(self, command: RemotingCommand) -> RemotingCommand:
        failures: list[RemotingError] = []
        share = self._timeout / len(self._addrs)
        first = self._chosen  # others may move it meanwhile
        for step in range(len(self._addrs)):
            number = (first + step) % len(self._addrs)
            addr = self._addrs[number]
            try:
                answer = await self._remoting.invoke_ok(addr, command, timeout=share)
            except RemotingError as error:
                failures.append(error)
                if addr not in self._silent:  # once, not with every question
                    log.warning("name_server_failed", addr=addr, reason=str(error))
                self._silent[addr] = error
                continue
            if self._silent.pop(addr, None) is not None:
                log.info("name_server_answers_again", addr=addr)
            self._chosen = number
            return answer
        if len(failures) == 1:
            raise failures[0]
        raise RemotingConnectError("no name server answered: " + "; ".join(str(error) for error in failures))
