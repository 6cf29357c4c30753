"""Requests to the name servers: all go to one server until it fails, or lacks what another one has.

Name servers copy nothing to each other. One that was restarted answers at once, without routes and brokers,
until brokers register again (up to 30 s; with ``needWaitForService`` it refuses for 45 s). So a "no" of one
server proves nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rmqtools.engine.connection.large_bodies import parse_aside
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.engine.connection.retrying import look_up
from rmqtools.errors import BrokerError, RemotingConnectError, RemotingError, TopicNotFoundError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.route import ClusterInfo, TopicRouteData
from rmqtools.number_of import number_of
from rmqtools.policy.route_update import DEFAULT_TOPIC
from rmqtools.protocol.headers.codec import RequestHeader
from rmqtools.protocol.headers.topic import GetRouteInfoRequestHeader
from rmqtools.protocol.wire.bodies import parse_cluster_info, parse_topic_list, parse_topic_route
from rmqtools.protocol.wire.command import RemotingCommand, request

log = get_logger(__name__)

T = TypeVar("T")

_ANY_ROUTE = request(GetRouteInfoRequestHeader(topic=DEFAULT_TOPIC, accept_standard_json_only=True))


def has_brokers(info: ClusterInfo) -> bool:
    """Return whether a name server knows any broker."""
    return bool(info.broker_addr_table)


@dataclass(slots=True)
class _Answers(Generic[T]):
    """Answers of the name servers to one request."""

    found: T | None = None
    lacking: dict[str, T | None] = field(default_factory=dict)
    """By address: an answer without what was asked for."""
    failures: list[BrokerError | RemotingError] = field(default_factory=list)

    def describe(self) -> str:
        """Name the servers that lack it, and those that did not say, with their reasons."""
        silent = f" (not told by others: {'; '.join(map(str, self.failures))})" if self.failures else ""
        return ", ".join(self.lacking) + silent


class NameServerClient:
    """Sends requests to one of several name servers, and to the others if that has no answer.

    What a server lacks is missing only if no other one has it either; then each was asked once.
    Source of the rule: NettyRemotingClient.getAndCreateNameserverChannel (Java client). Ours: the others are
    also asked after a "no": a restarted name server knows no broker, or is "not ready" (needWaitForService).
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
            TopicNotFoundError: no name server knows such a topic; the text names each.
            UnsupportedError: they are no name servers.
            BrokerError: all refused.
            RemotingError: no name server answered within the timeout; the text names each.
        """
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        answers = await self._ask(request(header), parse_topic_route, lambda _: True)
        if answers.found is None:
            raise TopicNotFoundError(f"topic {topic!r} has no route at {answers.describe()}")
        return answers.found

    async def fetch_cluster_info(self, has: Callable[[ClusterInfo], bool] = has_brokers) -> ClusterInfo:
        """Fetch the clusters and their brokers from a name server that ``has`` what the caller looks for.

        If none has it: from the one that knows the most brokers.
        """
        command = RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO)
        answers = await self._ask(command, parse_cluster_info, has)
        known = [info for info in (answers.found, *answers.lacking.values()) if info is not None]
        return answers.found or max(known, key=lambda info: len(info.broker_addr_table))

    async def fetch_topic_list(self) -> tuple[str, ...]:
        """Fetch the names of all topics, including system topics."""
        command = RemotingCommand(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return (await self._ask(command, parse_topic_list, bool)).found or ()

    async def change_each(self, header: RequestHeader) -> None:
        """Send a change to every name server at the same time, whether or not others fail.

        Raises:
            BrokerError: a name server refused.
            RemotingError: some name servers did not answer; the text names each.
        """
        command, addrs = request(header), await self.addrs()
        asking = (self._invoke(addr, command, self._timeout) for addr in addrs)
        answers = await asyncio.gather(*asking, return_exceptions=True)
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        for failure in failures:
            if not isinstance(failure, RemotingError):
                raise failure
        if failures:
            raise RemotingError(
                f"{len(failures)} of {number_of(len(addrs), 'name server')} may not have the change: "
                f"{'; '.join(map(str, failures))}; repeat it when all of them answer"
            ) from failures[0]

    async def check_is_no_broker(self, addr: str) -> None:
        """Raise an UnsupportedError if an address given as name server does not know routes."""
        await self._invoke(addr, _ANY_ROUTE, self._timeout)

    async def _ask(
        self, command: RemotingCommand, parse: Callable[[bytes], T], has: Callable[[T], bool]
    ) -> _Answers[T]:
        """Send a request to the chosen name server; if that does not have it, to the others."""
        return await look_up(lambda: self._ask_each(command, parse, has), timeout=self._timeout)

    async def _ask_each(
        self, command: RemotingCommand, parse: Callable[[bytes], T], has: Callable[[T], bool]
    ) -> _Answers[T]:
        answers: _Answers[T] = _Answers()
        addrs = await self._servers.current()
        first = self._chosen  # concurrent callers may change it
        for step in range(len(addrs)):
            number = (first + step) % len(addrs)
            addr = addrs[number]
            try:
                answer = await self._invoke(addr, command, self._timeout / len(addrs))
            except (BrokerError, RemotingError) as error:
                answers.failures.append(error)
                continue
            value = None if answer is None else await parse_aside(parse, answer.body)
            if value is not None and has(value):
                if answers.lacking:
                    log.warning("name_server_incomplete", addr=", ".join(answers.lacking), found_at=addr)
                answers.found, self._chosen = value, number
                return answers
            answers.lacking[addr] = value
        if not answers.lacking:
            raise _one_of(answers.failures)
        return answers

    async def _invoke(self, addr: str, command: RemotingCommand, timeout: float) -> RemotingCommand | None:
        """Ask one name server; None: it has no such topic. Route answers also show whether it is a proxy."""
        try:
            answer = await self._remoting.invoke(addr, command, timeout=timeout)
        except RemotingError as error:
            self._servers.failed()
            if addr not in self._silent:  # once, not for every request
                log.warning("name_server_failed", addr=addr, reason=str(error))
            self._silent[addr] = error
            raise
        if self._silent.pop(addr, None) is not None:
            log.info("name_server_answers_again", addr=addr)
        if command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:  # name servers and proxies serve it
                raise self._remoting.endpoint.no_name_server(addr, answer.remark)
            self._remoting.endpoint.note_route_answer(addr, answer.ext_fields)
            if answer.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
        elif answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:  # by a proxy, or by no name server
            await self._invoke(addr, _ANY_ROUTE, timeout)
        return self._remoting.checked(answer, command.code, addr)


def _one_of(failures: list[BrokerError | RemotingError]) -> BrokerError | RemotingError:
    """Return the error for a request that no name server has answered: a refusal, if there is one."""
    refusal = next((failure for failure in failures if isinstance(failure, BrokerError)), None)
    if refusal is not None or len(failures) == 1:
        return refusal or failures[0]
    silence = RemotingConnectError("no name server answered: " + "; ".join(map(str, failures)))
    silence.retriable = any(failure.retriable for failure in failures)
    return silence
