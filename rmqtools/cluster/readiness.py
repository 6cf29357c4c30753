"""Wait until servers answer: asked in their own protocol, as clients will ask them."""

import socket
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from rmqtools import Admin, ClientConfig, Perm
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.server import Server
from rmqtools.errors import BrokerError, RocketMQError

_PAUSE = 0.1  # seconds between two questions


class NotReadyError(Exception):
    """Not yet: asked again, never seen outside."""


class ReadinessProbe:
    """Asks one name server, and its brokers, until they answer or time is up.

    Args:
        name_server: ``host:port``.
        timeout: seconds for all waits together.
        check: called before every question; raises if waiting has become useless.
        logs: where the servers log, for the error.
    """

    def __init__(self, name_server: str, *, timeout: float, check: Callable[[], None], logs: str) -> None:
        self._name_server = name_server
        self._timeout = timeout
        self._check = check
        self._logs = logs
        self._deadline = SYSTEM_CLOCK.monotonic() + timeout
        self._admin = Admin(ClientConfig(name_server=name_server, connect_timeout=1.0))

    def await_name_server(self) -> None:
        """Return when the name server answers.

        Raises:
            ClusterError: time is up; so does :meth:`await_brokers`.
        """
        self._await(())

    def await_brokers(self, brokers: Sequence[Server]) -> None:
        """Return when the name server knows the brokers and each of them answers."""
        self._await(brokers)

    def _await(self, brokers: Sequence[Server]) -> None:
        again = Retrying(
            retry=retry_if_exception_type(NotReadyError),
            wait=wait_fixed(_PAUSE),
            stop=stop_after_delay(self._deadline - SYSTEM_CLOCK.monotonic()),
            reraise=True,
        )
        try:
            again(self._ask, brokers)
        except NotReadyError as error:
            raise ClusterError(
                f"not ready after {self._timeout:g} s: {error}; read {self._logs}, or give it more time"
            ) from error

    def _ask(self, brokers: Sequence[Server]) -> None:
        self._check()
        try:
            _knock(self._name_server)
            known = self._admin.fetch_cluster_info().broker_addr_table
            for broker in brokers:
                _knock(broker.address)
                self._ask_broker(broker.address)
                if broker.name not in known:
                    self._nudge(broker)
                    raise NotReadyError(f"{broker.name} not registered at name server {self._name_server}")
        except RocketMQError as error:
            raise NotReadyError(str(error)) from error

    def _ask_broker(self, address: str) -> None:
        try:
            self._admin.fetch_broker_runtime_info(address)
        except BrokerError:
            return  # it answers; in its first second it has no statistics yet and says so with an error

    def _nudge(self, broker: Server) -> None:
        """Make a broker register now.

        At its start a broker connects to the name server in the background and registers only if
        that was quick enough; its next try comes 10 s later. Setting its permission makes it register
        too, so it is set to what it is (AdminBrokerProcessor.updateBrokerConfig in the server).
        """
        permission = broker.settings.get("brokerPermission", str(int(Perm.READ | Perm.WRITE)))
        self._admin.update_broker_config(broker.address, {"brokerPermission": permission})

    def __enter__(self) -> Self:
        self._admin.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admin.close()


def _knock(address: str) -> None:
    """Spare the client, and whoever reads its warnings, a server that does not listen yet."""
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=1.0).close()
    except OSError as error:
        raise NotReadyError(f"{address} does not listen ({error})") from error
