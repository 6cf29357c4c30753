"""Wait until servers answer: asked in their own protocol, as clients will ask them."""

import socket
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from rmqtools import Admin, ClientConfig
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster.errors import ClusterError
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
        self._await(self._ask_brokers, ())

    def await_brokers(self, names: Collection[str]) -> None:
        """Return when the name server knows the brokers and each of them answers."""
        self._await(self._ask_brokers, names)

    def _await(self, ask: Callable[[Collection[str]], None], names: Collection[str]) -> None:
        again = Retrying(
            retry=retry_if_exception_type(NotReadyError),
            wait=wait_fixed(_PAUSE),
            stop=stop_after_delay(self._deadline - SYSTEM_CLOCK.monotonic()),
            reraise=True,
        )
        try:
            again(ask, names)
        except NotReadyError as error:
            raise ClusterError(
                f"not ready after {self._timeout:g} s: {error}; read {self._logs}, or give it more time"
            ) from error

    def _ask_brokers(self, names: Collection[str]) -> None:
        self._check()
        self._knock()
        try:
            known = self._admin.fetch_cluster_info().broker_addr_table
            missing = sorted(set(names) - set(known))
            if missing:
                raise NotReadyError(f"{', '.join(missing)} not registered at name server {self._name_server}")
            for name in names:
                self._ask_broker(known[name].broker_addrs[0])
        except RocketMQError as error:
            raise NotReadyError(str(error)) from error

    def _knock(self) -> None:
        """Spare the client, and whoever reads its warnings, a name server that does not listen yet."""
        host, port = self._name_server.rsplit(":", 1)
        try:
            socket.create_connection((host, int(port)), timeout=1.0).close()
        except OSError as error:
            raise NotReadyError(f"name server {self._name_server} does not listen ({error})") from error

    def _ask_broker(self, address: str) -> None:
        try:
            self._admin.fetch_broker_runtime_info(address)
        except BrokerError:
            return  # it answers; in its first second it has no statistics yet and says so with an error

    def __enter__(self) -> Self:
        self._admin.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admin.close()
