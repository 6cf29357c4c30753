"""Waits until servers answer requests in their own protocol, as clients would send them.

- A healthy slave answers ``brokerActive=false``: it delivers no delayed messages and checks no transactions.
- A slave takes over topics, groups and offsets 60 s after its start for the first time, and then every 60 s.
- A broker whose connection to the name server is not up at its start registers 10 s later, so
  ``update_broker_config`` triggers the registration.
- A broker has no answer to GET_BROKER_RUNTIME_INFO in its first second, and one to GET_BROKER_CONFIG.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from rmqtools import Admin, ClientConfig, Perm
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.ports import LOOPBACK
from rmqtools.cluster.server import Server
from rmqtools.errors import BrokerError, RocketMQError

_PAUSE = 0.1  # seconds between two requests


class NotReadyError(Exception):
    """A server is not ready yet. Caught in this module."""


class ReadinessProbe:
    """Sends requests to one name server and its brokers until they answer or time is up.

    Args:
        config: how to reach the name server.
        timeout: seconds for all waits together.
        check: called before every request; raises if waiting has become useless.
        logs: the servers' logs, for the error's text.
    """

    def __init__(self, config: ClientConfig, *, timeout: float, check: Callable[[], None], logs: str) -> None:
        self._name_server = config.name_server
        self._timeout = timeout
        self._check = check
        self._logs = logs
        self._deadline = SYSTEM_CLOCK.monotonic() + timeout
        self._admin = Admin(replace(config, connect_timeout=1.0))

    def await_name_server(self) -> None:
        """Wait until the name server answers.

        Raises:
            ClusterError: time is up. :meth:`await_brokers` raises it too.
        """
        self._await(partial(self._ask_brokers, ()))

    def await_brokers(self, brokers: Sequence[Server]) -> None:
        """Return when the name server knows the brokers and each of them answers."""
        self._await(partial(self._ask_brokers, brokers))

    def await_proxy(self, proxy: Server) -> None:
        """Return when the proxy listens: it does so as the last step of its start."""
        self._await(partial(_knock, proxy.address))

    def _await(self, ask: Callable[[], None]) -> None:
        again = Retrying(
            retry=retry_if_exception_type(NotReadyError),
            wait=wait_fixed(_PAUSE),
            stop=stop_after_delay(self._deadline - SYSTEM_CLOCK.monotonic()),
            reraise=True,
        )
        try:
            again(self._checked, ask)
        except NotReadyError as error:
            raise ClusterError(
                f"not ready after {self._timeout:g} s: {error}; read {self._logs}, or give it more time"
            ) from error

    def _checked(self, ask: Callable[[], None]) -> None:
        self._check()
        ask()

    def _ask_brokers(self, brokers: Sequence[Server]) -> None:
        try:
            _knock(self._name_server)
            known = self._admin.fetch_cluster_info().broker_addr_table
            for broker in brokers:
                _knock(broker.address)
                self._ask_broker(broker.address)
                data = known.get(broker.broker_name)
                if data is None or broker.broker_id not in data.broker_addrs:
                    self._nudge(broker)
                    raise NotReadyError(f"{broker.name} not registered at name server {self._name_server}")
        except RocketMQError as error:
            raise NotReadyError(str(error)) from error

    def _ask_broker(self, address: str) -> None:
        try:
            self._admin.fetch_broker_config(address)
        except BrokerError:
            return  # it answers, although it refuses this user

    def _nudge(self, broker: Server) -> None:
        """Make a broker register now.

        A starting broker connects to the name server in the background and registers only if that was
        quick enough; its next attempt comes 10 s later. Setting its permission also makes it register,
        so this sets the permission it has (AdminBrokerProcessor.updateBrokerConfig in the server).
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


def listens(port: int) -> bool:
    """Return whether a port of this machine accepts connections."""
    try:
        _knock(f"{LOOPBACK}:{port}")
    except NotReadyError:
        return False
    return True


def _knock(address: str) -> None:
    """Connect once, so that the client logs no warnings about a server that does not listen yet."""
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=1.0).close()
    except OSError as error:
        raise NotReadyError(f"{address} does not listen ({error})") from error
