"""Connections by address: made when first needed, shared, replaced when they break."""

import asyncio
import ssl
from collections.abc import Awaitable, Mapping

from rmqtools.clock import SYSTEM_CLOCK, Clock
from rmqtools.config import ClientConfig, parse_address
from rmqtools.engine.shared_work import SharedWork
from rmqtools.engine.transport import Connection, RequestHandler
from rmqtools.errors import BrokerError, ClientStateError, ConfigError, RemotingConnectError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.acl import AclSigner
from rmqtools.protocol.command import RemotingCommand, response
from rmqtools.protocol.template import Request

log = get_logger(__name__)


class Remoting:
    """Requests to any address. Belongs to one event loop."""

    def __init__(self, config: ClientConfig, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._config = config
        self._clock = clock
        self._tls = _tls_context(config)
        self._signer = _signer(config)
        self._connecting = SharedWork[Connection]()
        self._open: dict[str, Connection] = {}
        self._handlers: dict[int, RequestHandler] = {}
        self._closed = False

    def on_request(self, code: RequestCode, handler: RequestHandler) -> None:
        """Answer the brokers' own requests of this code with ``handler(command, addr)``."""
        self._handlers[code] = handler

    def invoke(
        self, addr: str, command: Request, *, timeout: float | None = None
    ) -> Awaitable[RemotingCommand]:
        """Send a request, and wait for its answer, whatever its code.

        Where there is a connection, it is written at once, and what is returned is a future, no coroutine.

        Args:
            addr: ``host:port`` as the route names it; ``broker_address_map`` is applied here.
            command: the request; its opaque is set here.
            timeout: seconds for connecting and answering together; None: ``request_timeout``.

        Raises:
            RemotingConnectError: no connection, nothing was sent.
            RemotingTimeoutError, ConnectionLostError: sent, but nobody answered.
        """
        budget = self._config.request_timeout if timeout is None else timeout
        connection = self._open.get(addr)
        if connection is not None and connection.is_ready:  # as nearly always: no coroutine for it
            return connection.start(self.signed(command), budget)
        return self._connect_and_invoke(addr, command, budget)

    async def invoke_ok(
        self, addr: str, command: RemotingCommand, *, timeout: float | None = None
    ) -> RemotingCommand:
        """Like :meth:`invoke`, for answers of code SUCCESS.

        Raises:
            BrokerError: any other code.
        """
        answer = await self.invoke(addr, command, timeout=timeout)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, addr)
        return answer

    async def invoke_oneway(self, addr: str, command: Request, *, timeout: float | None = None) -> None:
        """Send a command that nobody answers; returns once it is written.

        Waits while the peer takes no bytes, and lets the loop run: nothing else makes a sender wait.
        """
        connection = await self.connect(addr, timeout=timeout)
        await connection.wait_writable(self._config.request_timeout if timeout is None else timeout)
        connection.send_oneway(self.signed(command))
        await asyncio.sleep(0)

    async def connect(self, addr: str, *, timeout: float | None = None) -> Connection:
        """The open connection to an address, made if need be. Callers at the same time share one attempt.

        Raises:
            RemotingConnectError: refused, unreachable or not made in time.
        """
        if self._closed:
            raise ClientStateError("the client is closed")
        connection = self._open.get(addr)
        if connection is not None and connection.is_usable:
            return connection
        limit = (
            self._config.connect_timeout if timeout is None else min(timeout, self._config.connect_timeout)
        )
        try:
            async with asyncio.timeout(limit):
                return await self._connecting.run(addr, lambda: self._make_connection(addr))
        except TimeoutError as error:
            raise RemotingConnectError(f"cannot connect to {addr}: no answer within {limit:.3f} s") from error

    def signed(self, request: Request) -> Request:
        """The request with credentials, if the client has any."""
        return self._signer.sign(request.command()) if self._signer else request

    async def close(self) -> None:
        """Close all connections; answers still awaited fail."""
        self._closed = True
        await self._connecting.close()
        connections, self._open = list(self._open.values()), {}
        await asyncio.gather(*(connection.close() for connection in connections))

    async def _connect_and_invoke(self, addr: str, command: Request, budget: float) -> RemotingCommand:
        deadline = self._clock.monotonic() + budget
        connection = await self.connect(addr, timeout=budget)
        return await connection.invoke(self.signed(command), max(0.0, deadline - self._clock.monotonic()))

    async def _make_connection(self, addr: str) -> Connection:
        host, port = parse_address(_mapped(addr, self._config.broker_address_map))
        timeout = self._config.connect_timeout
        try:
            async with asyncio.timeout(timeout):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(
                        addr, on_request=self._dispatch, max_frame_bytes=self._config.max_frame_bytes
                    ),
                    host,
                    port,
                    ssl=self._tls,
                )
        except TimeoutError as error:
            raise RemotingConnectError(f"cannot connect to {addr}: no answer within {timeout} s") from error
        except (OSError, ssl.SSLError) as error:
            raise RemotingConnectError(f"cannot connect to {addr}: {error}") from error
        if (silent := self._open.get(addr)) is not None:
            silent.retire()
        self._open[addr] = connection
        return connection

    async def _dispatch(self, request: RemotingCommand, addr: str) -> RemotingCommand | None:
        """Answer a request of a broker; a handler that raises is logged and answered with its error."""
        handler = self._handlers.get(request.code)
        if handler is None:
            remark = f"request type {request.code} not supported"
            return response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, request.opaque, remark)
        try:
            return await handler(request, addr)
        except Exception as error:  # the outermost frame of a handler: the connection must live on
            log.exception("request_handler_failed", code=request.code, addr=addr)
            return response(ResponseCode.SYSTEM_ERROR, request.opaque, repr(error))


def _mapped(addr: str, table: Mapping[str, str]) -> str:
    return table.get(addr, addr)


def _signer(config: ClientConfig) -> AclSigner | None:
    if config.access_key is None or config.secret_key is None:
        return None
    return AclSigner(config.access_key, config.secret_key, config.security_token)


def _tls_context(config: ClientConfig) -> ssl.SSLContext | None:
    if not config.tls_enable:
        return None
    try:
        context = ssl.create_default_context(cafile=config.tls_ca_file)
        context.check_hostname = config.tls_check_hostname
        if config.tls_cert_file:
            context.load_cert_chain(config.tls_cert_file, config.tls_key_file)
    except (OSError, ssl.SSLError) as error:
        files = [config.tls_ca_file, config.tls_cert_file, config.tls_key_file]
        raise ConfigError(f"TLS files {[f for f in files if f]} cannot be used: {error}") from error
    return context
