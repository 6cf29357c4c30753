"""Requests to the name servers: all go to one server until it fails, then to the next that answers."""

from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import BrokerError, RemotingConnectError, RemotingError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.route import ClusterInfo, TopicRouteData
from rmqtools.protocol.headers.topic import GetRouteInfoRequestHeader
from rmqtools.protocol.wire.bodies import parse_cluster_info, parse_topic_list, parse_topic_route
from rmqtools.protocol.wire.command import RemotingCommand, request

log = get_logger(__name__)


class NameServerClient:
    """Sends requests to one of several name servers, and to another one when that does not answer.

    Source of the rule: NettyRemotingClient.getAndCreateNameserverChannel (Java client).
    """

    def __init__(self, remoting: Remoting, *, first: int, timeout: float) -> None:
        self._remoting = remoting
        self._servers = remoting.name_servers
        self._chosen = first
        self._timeout = timeout
        self._silent: dict[str, RemotingError] = {}  # name servers that did not answer the last request

    @property
    def last_failure(self) -> RemotingError | None:
        """The error of a name server that did not answer its last request; None: all answered."""
        return next(reversed(self._silent.values()), None)

    async def addrs(self) -> tuple[str, ...]:
        """Return the addresses of all name servers, in the order given; names are resolved."""
        return await self._servers.current()

    async def fetch_route(self, topic: str) -> TopicRouteData:
        """Fetch the route of a topic.

        Raises:
            TopicNotFoundError: the name server knows no such topic.
            RemotingError: no name server answered within the timeout; the text names each.
        """
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        try:
            return await parse_aside(parse_topic_route, (await self.ask(request(header))).body)
        except BrokerError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                raise TopicNotFoundError(f"topic {topic!r} has no route: {error}") from error
            raise

    async def fetch_cluster_info(self) -> ClusterInfo:
        """Fetch the clusters and their brokers."""
        answer = await self.ask(RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO))
        return await parse_aside(parse_cluster_info, answer.body)

    async def fetch_topic_list(self) -> tuple[str, ...]:
        """Fetch the names of all topics, including system topics."""
        answer = await self.ask(RemotingCommand(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER))
        return await parse_aside(parse_topic_list, answer.body)

    async def ask(self, command: RemotingCommand) -> RemotingCommand:
        """Send a request to the chosen name server; if it does not answer, to the others."""
        return await look_up(lambda: self._ask_each(command), timeout=self._timeout)

    async def _ask_each(self, command: RemotingCommand) -> RemotingCommand:
        failures: list[RemotingError] = []
        addrs = await self._servers.current()
        share = self._timeout / len(addrs)
        first = self._chosen  # concurrent callers may change it
        for step in range(len(addrs)):
            number = (first + step) % len(addrs)
            addr = addrs[number]
            try:
                answer = await self._invoke(addr, command, share)
            except RemotingError as error:
                failures.append(error)
                self._servers.failed()
                if addr not in self._silent:  # once, not for every request
                    log.warning("name_server_failed", addr=addr, reason=str(error))
                self._silent[addr] = error
                continue
            if self._silent.pop(addr, None) is not None:
                log.info("name_server_answers_again", addr=addr)
            self._chosen = number
            return answer
        if len(failures) == 1:
            raise failures[0]
        silence = RemotingConnectError("no name server answered: " + "; ".join(map(str, failures)))
        silence.retriable = any(failure.retriable for failure in failures)
        raise silence

    async def _invoke(self, addr: str, command: RemotingCommand, timeout: float) -> RemotingCommand:
        """Ask one name server; answers about routes also show whether it is a proxy."""
        if command.code != RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return await self._remoting.invoke_ok(addr, command, timeout=timeout)
        answer = await self._remoting.invoke(addr, command, timeout=timeout)
        self._remoting.endpoint.note_route_answer(addr, answer.ext_fields)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, addr)
        return answer
