"""The connection of one writer alone, with at most one request on the wire.

Closing it resets it, and so does the end of this process: a dead writer's kernel delivers nothing more.
"""

import asyncio

from rmqtools.engine.connection.client import ClientCore
from rmqtools.engine.connection.transport import Connection
from rmqtools.engine.exact.settle import BOOT_TIME, Settlement, boot_time
from rmqtools.errors import BrokerError, ClientStateError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode
from rmqtools.protocol.wire.command import RemotingCommand
from rmqtools.protocol.wire.template import Request

log = get_logger(__name__)

_LOG_INTERVAL = 30.0  # seconds between two log events while an answer is awaited


class OwnConnection:
    """A writer's connection to one broker.

    Attributes:
        boot: when the broker of this connection was started; None: not known.
        addr: its address.
    """

    def __init__(self, client: ClientCore, settlement: Settlement) -> None:
        self._client = client
        self._settlement = settlement
        self._connection: Connection | None = None
        self._answer: asyncio.Future[RemotingCommand] | None = None
        self._is_closed = False
        self.boot: str | None = None
        self.addr = ""

    @property
    def is_open(self) -> bool:
        """True if a request can be written."""
        return self._connection is not None and self._connection.is_open

    @property
    def has_request(self) -> bool:
        """True if a request is on the wire, or was when the connection was lost."""
        return self._answer is not None

    async def open(self) -> None:
        """Connect unless it is open, however long that takes.

        Raises:
            ClientStateError: it was closed.
        """
        while not self.is_open:
            await self._settlement.patiently(self._connect)

    def start(self, request: Request) -> None:
        """Write a request at once."""
        assert self._connection is not None
        self._answer = self._connection.start_kept(self._client.remoting.signed(request))

    async def answer(self) -> RemotingCommand | None:
        """Wait for the answer to the request, however long that takes; None: the connection was lost.

        A cancelled call may be repeated.
        """
        assert self._answer is not None
        while not (await asyncio.wait({self._answer}, timeout=_LOG_INTERVAL))[0]:
            log.warning("answer_awaited", addr=self.addr)
        try:
            return self._answer.result()
        except RocketMQError as error:
            log.info("answer_lost", addr=self.addr, reason=str(error))
            return None
        finally:
            self._answer = None

    def close(self) -> None:
        """Reset the connection. What the broker has not accepted yet is dropped."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.abort()
        if self._answer is not None:
            self._answer.add_done_callback(_retrieve)

    async def _connect(self) -> None:
        if self._is_closed:
            raise ClientStateError("the appender is closed: make a new one")
        self._client.check_started()
        self.addr = self._settlement.addr()
        connection = await self._client.remoting.open_alone(self.addr)
        try:
            answer = await connection.invoke(
                self._client.remoting.signed(BOOT_TIME), self._client.config.request_timeout
            )
            if answer.code != ResponseCode.SUCCESS:
                raise BrokerError(answer.code, answer.remark, self.addr)
            self.boot = boot_time(answer)
        except BaseException:
            connection.abort()
            raise
        self._connection = connection


def _retrieve(answer: "asyncio.Future[RemotingCommand]") -> None:
    if not answer.cancelled():
        answer.exception()  # nobody waits for it any more
