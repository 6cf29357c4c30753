"""Connections by address: opened on first use, shared, replaced when they break."""

import asyncio
import random
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config.client import ClientConfig
from rmqtools.config.text import parse_address
from rmqtools.engine.connection.blocking_connection import BlockingConnection
from rmqtools.engine.connection.connection_pool import ConnectionPool
from rmqtools.engine.connection.endpoint import Endpoint
from rmqtools.engine.connection.name_server_addresses import NameServerAddresses
from rmqtools.engine.connection.opening import Opening
from rmqtools.engine.connection.peer_requests import RequestHandler
from rmqtools.engine.connection.single_flight import SharedWork
from rmqtools.engine.connection.tls import tls_context, why_no_connection
from rmqtools.engine.connection.transport import Connection
from rmqtools.errors import BrokerError, ClientStateError, ConfigError, RemotingConnectError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.policy.backoff import ConnectBackoff
from rmqtools.policy.broker_address import describe_mapping, map_address
from rmqtools.protocol.wire.acl import AclSigner
from rmqtools.protocol.wire.command import RemotingCommand, response
from rmqtools.protocol.wire.template import Request

log = get_logger(__name__)

_PIPELINE_TO_PROXY = 2  # requests under way: one on the wire, and one that waits for its turn
_TLS_SHUTDOWN = 0.1  # seconds that closing waits for the peer's goodbye: brokers 5.5.0 send none

_MAX_OWN_ADDRESSES = 1000  # brokers list a closed connection for two minutes at most

# ValueError: IDNA refuses the name, it contains NUL, no host:port, a certificate for another name.
# RuntimeError: the interpreter is exiting, and threads no longer resolve names.
_NOT_CONNECTED = (OSError, ValueError, RuntimeError)

Start = Callable[[Request, float], "asyncio.Future[RemotingCommand]"]
"""Starts a request that may take so many seconds; errors as of :meth:`Remoting.invoke` are in the future."""
_SMALL_ANSWERS = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        RequestCode.END_TRANSACTION,
        RequestCode.RECALL_MESSAGE,
        RequestCode.HEART_BEAT,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.CHECK_CLIENT_CONFIG,
    }
)


class Remoting:
    """Requests to any address. Belongs to one event loop.

    Through a proxy, requests with large answers are on the wire one at a time, see
    :func:`may_answer_large`. Callers need not know: requests wait for their turn,
    which counts as a part of their time.
    """

    def __init__(self, config: ClientConfig, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.endpoint = Endpoint()
        self._config = config
        self.clock = clock
        self.pool = ConnectionPool(config, clock)
        self.name_servers = NameServerAddresses(config, clock)
        self._tls = tls_context(config)
        self._signer = _signer(config)
        self._connecting = SharedWork[Connection]()
        self._openings: defaultdict[str, Opening] = defaultdict(Opening)  # the last of each address
        self._backoff = ConnectBackoff()
        self._final: set[str] = set()  # addresses that only a change of settings or certificates can open
        self._open: dict[str, Connection] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # of large answers of proxies
        self._handlers: dict[int, RequestHandler] = {}
        self._own_addresses: deque[str] = deque(maxlen=_MAX_OWN_ADDRESSES)
        self._closed = False

    @property
    def connections(self) -> dict[str, Connection]:
        """The newest connection to each address, until it is replaced or this is closed."""
        return dict(self._open)

    def on_request(self, code: RequestCode, handler: RequestHandler) -> None:
        """Answer the brokers' own requests with this code by ``handler(command, addr)``."""
        self._handlers[code] = handler

    def invoke(
        self, addr: str, command: Request, *, timeout: float | None = None
    ) -> Awaitable[RemotingCommand]:
        """Send a request, and wait for its answer of any code.

        With an open connection, the request is written at once and the result is a future, not a coroutine.

        Args:
            addr: ``host:port`` as the route names it; ``broker_address_map`` is applied here.
            command: the request; its opaque is set here.
            timeout: seconds for connecting and answering together; None: ``request_timeout``.

        Raises:
            RemotingConnectError: no connection, nothing was sent.
            RemotingTimeoutError, ConnectionLostError: sent, but not answered.
        """
        budget = self._config.request_timeout if timeout is None else timeout
        if self.endpoint.is_proxy and may_answer_large(command):
            return self._invoke_in_turn(addr, command, budget)
        connection = self._open.get(addr)
        if connection is not None and connection.is_ready:  # almost always: no coroutine is needed
            return connection.start(self.signed(command), budget)
        return self._connect_and_invoke(addr, command, budget)

    async def invoke_ok(
        self, addr: str, command: RemotingCommand, *, timeout: float | None = None
    ) -> RemotingCommand:
        """As :meth:`invoke`, for answers with code SUCCESS.

        Raises:
            UnsupportedError: the server does not serve such requests.
            BrokerError: any other code.
        """
        return self.checked(await self.invoke(addr, command, timeout=timeout), command.code, addr)

    def checked(self, answer: RemotingCommand, code: int, addr: str) -> RemotingCommand:
        """Return an answer with code SUCCESS to a request of this code; errors as of :meth:`invoke_ok`."""
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise self.endpoint.not_served(code, answer.remark, addr)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, addr)
        return answer

    async def invoke_oneway(self, addr: str, command: Request, *, timeout: float | None = None) -> None:
        """Send a command without an answer; return once it is written.

        Waits while the peer accepts no bytes, and lets the loop run: otherwise a sender would never yield.
        """
        connection = await self.connect(addr, timeout=timeout)
        await connection.wait_writable(self._config.request_timeout if timeout is None else timeout)
        connection.send_oneway(self.signed(command))
        await asyncio.sleep(0)

    async def pipeline(self, addr: str, depth: int) -> tuple[Start, int]:
        """Open the connection to an address for several requests under way.

        Returns:
            A function that starts a request, for use before the next await, and how many of ``depth``
            requests should be under way.
        """
        connection = await self.connect(addr)
        if not self.endpoint.is_proxy:
            return lambda request, timeout: connection.start(self.signed(request), timeout), depth

        def start(request: Request, timeout: float) -> "asyncio.Future[RemotingCommand]":
            return asyncio.ensure_future(self.invoke(addr, request, timeout=timeout))

        return start, min(depth, _PIPELINE_TO_PROXY)

    def take_blocking(self, addr: str, timeout: float) -> BlockingConnection | None:
        """Take a connection for the calling thread, which gives it back to ``pool``; None: use ``invoke``.

        The only method, with :meth:`signed`, for other threads than the loop's.
        """
        beside = self._open.get(addr)
        return self.pool.take(beside, timeout) if beside is not None and beside.is_usable else None

    async def connect(self, addr: str, *, timeout: float | None = None) -> Connection:
        """Return the open connection to an address; open one if needed. Concurrent callers share it.

        Raises:
            RemotingConnectError: refused, unreachable or not open in time; or so a moment ago, see
                :class:`rmqtools.policy.backoff.ConnectBackoff`.
        """
        if self._closed:
            raise ClientStateError("the client is closed")
        connection = self._open.get(addr)
        if connection is not None and connection.is_usable:
            return connection
        if (reason := self._backoff.reason(addr, self.clock.monotonic())) is not None:
            raise self._unreachable(addr, reason, is_final=addr in self._final)
        limit = (
            self._config.connect_timeout if timeout is None else min(timeout, self._config.connect_timeout)
        )
        try:
            async with asyncio.timeout(limit):
                return await self._connecting.run(addr, lambda: self._make_connection(addr))
        except TimeoutError as error:
            step = self._openings[addr].step
            raise self._unreachable(addr, f"{step}: no answer within {limit:.3f} s") from error

    def signed(self, request: Request) -> Request:
        """Return the request with credentials, if the client has them."""
        return self._signer.sign(request.command()) if self._signer else request

    def is_own_address(self, addr: str) -> bool:
        """Return whether a present or former connection of this client has this local address.

        Behind NAT, brokers list other addresses, and this is always False.
        """
        return addr in self._own_addresses

    async def close(self) -> None:
        """Close all connections; pending answers fail."""
        self._closed = True
        self.pool.cut()
        await self._connecting.close()
        await self.name_servers.close()
        connections, self._open = list(self._open.values()), {}
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _connect_and_invoke(self, addr: str, command: Request, budget: float) -> RemotingCommand:
        deadline = self.clock.monotonic() + budget
        connection = await self.connect(addr, timeout=budget)
        return await connection.invoke(self.signed(command), max(0.0, deadline - self.clock.monotonic()))

    async def _invoke_in_turn(self, addr: str, command: Request, budget: float) -> RemotingCommand:
        """As :meth:`_connect_and_invoke`, when the proxy has answered the earlier requests."""
        deadline, turn = self.clock.monotonic() + budget, self._turns[addr]
        try:
            async with asyncio.timeout(budget):
                await turn.acquire()
        except TimeoutError as error:
            raise RemotingConnectError(
                f"earlier requests to the proxy at {addr} took {budget:.3f} s: nothing was sent"
            ) from error
        try:
            connection = await self.connect(addr, timeout=max(0.0, deadline - self.clock.monotonic()))
            await connection.wait_writable(max(0.0, deadline - self.clock.monotonic()))
            left = max(0.0, deadline - self.clock.monotonic())
            answer = connection.start(self.signed(command), left)
        except BaseException:
            turn.release()
            raise

        def ended(answer: "asyncio.Future[RemotingCommand]") -> None:
            """Release the turn: the answer came, or its time is over, whatever becomes of the caller."""
            turn.release()
            if not answer.cancelled():
                answer.exception()  # a cancelled caller does not look at it

        answer.add_done_callback(ended)
        return await asyncio.shield(answer)

    async def open_alone(self, addr: str) -> Connection:
        """Open a connection for its caller alone, who closes it. It is not shared, and not kept here.

        Closing it, and the end of this process, drop what the peer has not accepted yet (SO_LINGER 0).

        Raises:
            RemotingConnectError: as :meth:`connect`.
        """
        if self._closed:
            raise ClientStateError("the client is closed")
        if (reason := self._backoff.reason(addr, self.clock.monotonic())) is not None:
            raise self._unreachable(addr, reason, is_final=addr in self._final)
        return await self._open_connection(addr, resets=True)

    async def _make_connection(self, addr: str) -> Connection:
        """Open and register a connection."""
        connection = await self._open_connection(addr)
        if (silent := self._open.get(addr)) is not None:
            silent.retire()
        self._open[addr] = connection
        return connection

    async def _open_connection(self, addr: str, *, resets: bool = False) -> Connection:
        """Open a connection. Converts every error of resolver, socket or TLS to ours."""
        timeout = self._config.connect_timeout
        opening = self._openings[addr] = Opening()
        try:
            host, port = parse_address(self._mapped(addr))
            async with asyncio.timeout(timeout):
                connection = await opening.open(
                    host,
                    port,
                    lambda: Connection(
                        addr,
                        on_request=self._dispatch,
                        max_frame_bytes=self._config.max_frame_bytes,
                        # A proxy 5.5.0 forwards requests with their opaques and matches answers by opaque
                        # alone: connections that all count from 1 could get each other's answers.
                        first_opaque=random.getrandbits(31),
                        may_restart=self._may_restart(addr),
                    ),
                    resets=resets,
                    ssl=self._tls,
                    server_hostname=(self.name_servers.host_of(addr) or host) if self._tls else None,
                    ssl_shutdown_timeout=None if self._tls is None else _TLS_SHUTDOWN,
                )
        except TimeoutError as error:
            raise self._unreachable(addr, f"{opening.step}: no answer within {timeout} s") from error
        except ConfigError as error:
            raise self._unreachable(addr, str(error)) from error
        except _NOT_CONNECTED as error:
            reason, is_final = why_no_connection(error, opening.step)
            is_final = is_final and not self._may_restart(addr)
            self._backoff.failed(addr, reason, self.clock.monotonic())
            if is_final:
                self._final.add(addr)
            raise self._unreachable(addr, reason, is_final=is_final) from error
        self._backoff.connected(addr)
        self._own_addresses.append(connection.local_addr)
        self._final.discard(addr)
        return connection

    def _may_restart(self, addr: str) -> bool:
        """Return whether a connection that ends before its first byte may be a restart.

        Name servers are asked first, so wrong TLS settings show there. A broker, or a proxy in front of it,
        hangs up when it restarts, too.
        """
        return addr not in self.name_servers

    def _mapped(self, addr: str) -> str:
        """Return the address to connect to. For name servers, rules with ``*`` and functions do not apply."""
        rules = self._config.broker_address_map
        if addr in self.name_servers:
            return rules.get(addr, addr) if isinstance(rules, Mapping) else addr
        return map_address(addr, rules)

    def _unreachable(self, addr: str, reason: str, *, is_final: bool = False) -> RemotingConnectError:
        hint = "" if addr in self.name_servers else f" ({describe_mapping(addr, self._mapped(addr))})"
        error = RemotingConnectError(f"cannot connect to {addr}: {reason}{hint}")
        error.retriable = not is_final
        return error

    async def _dispatch(self, request: RemotingCommand, addr: str) -> RemotingCommand | None:
        """Answer a broker's request. If the handler raises, log the error and answer with it."""
        handler = self._handlers.get(request.code)
        if handler is None:
            remark = f"request type {request.code} not supported"
            return response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, request.opaque, remark)
        try:
            return await handler(request, addr)
        except Exception as error:  # outermost frame of a handler: the connection must survive
            log.exception("request_handler_failed", code=request.code, addr=addr)
            return response(ResponseCode.SYSTEM_ERROR, request.opaque, repr(error))


def _signer(config: ClientConfig) -> AclSigner | None:
    if config.access_key is None or config.secret_key is None:
        return None
    return AclSigner(config.access_key, config.secret_key, config.security_token)


def forget_answer(answer: "asyncio.Future[RemotingCommand]") -> None:
    """Stop waiting for the answer to a request that was begun, and mark its error, if any, as retrieved."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()


def may_answer_large(request: Request) -> bool:
    """Return whether a request to a proxy waits for its turn: its answer may be large, and is not held back.

    A proxy 5.5.0 drops an answer while 64 KB of earlier ones wait on the connection, and its client waits in
    vain. The answers to a pull and to a batch may be that large, so only one of them is on the wire. Requests
    whose answers have less than 1 KB wait for nobody: thousands of sends would use up their time in a line.
    Pulls that the proxy holds until messages come (long polls) do not wait either: they would keep others
    back for seconds.

    Source of the rule: AbstractRemotingActivity.writeResponse (proxy 5.5.0).
    """
    if request.code in _SMALL_ANSWERS:
        return False
    if request.code == RequestCode.PULL_MESSAGE:
        flag = request.command().ext_fields.get("sysFlag") or "0"
        return not (flag.isdecimal() and int(flag) & PullSysFlag.FLAG_SUSPEND)
    return True
