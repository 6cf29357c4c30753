"""A real cluster on this machine: a name server, brokers and perhaps a proxy as child processes."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rmqtools.cluster.children import Children
from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.file_lock import FileLock
from rmqtools.cluster.jars import DownloadProgress, ensure_jars
from rmqtools.cluster.java import find_java
from rmqtools.cluster.lock import DEFAULT_VERSION, locked_jars
from rmqtools.cluster.ports import PortPicker
from rmqtools.cluster.processes import find_processes, stop_processes
from rmqtools.cluster.readiness import ReadinessProbe, listens
from rmqtools.cluster.security import ClusterSecurity, Secured, secure
from rmqtools.cluster.server import Server, broker, name_server, proxy, replicating, slave
from rmqtools.cluster.state import load_state, remove_state
from rmqtools.config import ClientConfig
from rmqtools.errors import ConfigError
from rmqtools.log import get_logger
from rmqtools.unknown_name import unknown_name

MAX_BROKERS = 26  # broker-a to broker-z
MAX_SLAVES = 9
STOP_GRACE = 30.0  # seconds that brokers get to store everything
_NOT_RUNNING = "the local cluster is not running: call start(), or use it in a with block"

log = get_logger(__name__)


class LocalCluster:
    """Start a name server and brokers; stop them when the block is left.

    ::

        with LocalCluster(brokers=2) as cluster:
            config = ClientConfig(name_server=cluster.name_server)

    The servers end with this process, however it ends, unless :meth:`detach` was called. An object can be
    started once. It is not thread-safe, but start and stop may be called on different threads.

    Args:
        brokers: how many masters (broker-a, broker-b, ...), 1 to 26.
        slaves: how many slaves each master has (broker-a-slave-1, ...), 0 to 9. Masters do not wait for them
            (ASYNC_MASTER), and they serve reads (``slaveReadEnable``), unless ``broker_settings`` say
            otherwise. They learn of a new topic within a minute. Replication listens on every address and
            gives all messages to everybody: see :attr:`exposed_ports`.
        directory: for messages, logs and settings; a later cluster with it has the same messages. None: a
            temporary directory, removed at the end.
        name_server_port: None: a free one.
        broker_ports: of the masters, in their order; each takes the ports 2 below and 1 above too. None:
            free ones.
        broker_settings: more lines for every broker's conf; they win over our own.
        timer_wheel: switch on arbitrary delays; costs 80 MB for each broker.
        proxy: start a proxy (cluster mode) too, see :attr:`proxy`. It listens on every address.
        security: TLS and access control, 5.x only; see :attr:`client_settings`. None: neither.
        version: of the servers: one of :func:`rmqtools.cluster.lock.locked_versions`.
        jars: the server's jars; None: :func:`rmqtools.cluster.ensure_jars`.
        start_timeout: seconds until all brokers must answer, without downloads.
        progress: called during downloads, see :func:`rmqtools.cluster.ensure_jars`.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        slaves: int = 0,
        directory: Path | str | None = None,
        name_server_port: int | None = None,
        broker_ports: Sequence[int] | None = None,
        broker_settings: Mapping[str, str] | None = None,
        timer_wheel: bool = False,
        proxy: bool = False,
        security: ClusterSecurity | None = None,
        version: str = DEFAULT_VERSION,
        jars: Sequence[Path] | None = None,
        start_timeout: float = 240.0,
        progress: DownloadProgress | None = None,
    ) -> None:
        if not 1 <= brokers <= MAX_BROKERS:
            raise ConfigError(f"brokers={brokers}: a local cluster has 1 to {MAX_BROKERS} brokers")
        if not 0 <= slaves <= MAX_SLAVES:
            raise ConfigError(f"slaves={slaves}: a master of a local cluster has 0 to {MAX_SLAVES} slaves")
        if broker_ports is not None and len(broker_ports) != brokers:
            raise ConfigError(
                f"broker_ports={list(broker_ports)}: want {brokers}, one for each broker (brokers={brokers})"
            )
        if security is not None and (proxy or slaves or version.startswith("4.")):
            raise ConfigError(
                f"security with version={version!r}, proxy={proxy}, slaves={slaves}: a secured cluster has "
                "servers 5.x, no proxy and no slaves, which listen on every address: leave one of them out"
            )
        self._security = security
        self._secured = Secured()
        self._wanted = locked_jars(version, proxy=proxy) if jars is None else ()
        self._brokers = brokers
        self._slaves = slaves
        self._asked_directory = directory
        self._asked_port = name_server_port
        self._broker_ports = broker_ports
        self._settings = dict(broker_settings or {})
        self._timer_wheel = timer_wheel
        self._has_proxy = proxy
        self._jars = jars
        self._java = ""
        self._start_timeout = start_timeout
        self._progress = progress
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._lock: FileLock | None = None
        self._children: Children | None = None
        self._servers: tuple[Server, ...] = ()

    @property
    def servers(self) -> Sequence[Server]:
        """The name server, then the masters, then the slaves, then the proxy.

        Raises:
            ClusterError: not running. The properties below raise it too.
        """
        if not self._servers:
            raise ClusterError(_NOT_RUNNING)
        return self._servers

    @property
    def directory(self) -> Path:
        """The directory of messages, logs and settings."""
        return self.servers[0].directory

    @property
    def name_server(self) -> str:
        """``host:port`` of the name server."""
        return self.servers[0].address

    @property
    def broker_addrs(self) -> dict[str, str]:
        """``host:port`` of the masters, by broker name."""
        return {server.name: server.address for server in self._broker_servers if not server.broker_id}

    @property
    def proxy(self) -> str:
        """``host:port`` of the proxy's remoting port: the clients' ``name_server``.

        Raises:
            ClusterError: not running, or started without a proxy.
        """
        if not self.servers[-1].is_proxy:
            raise ClusterError("this cluster has no proxy: start it with proxy=True")
        return self.servers[-1].address

    @property
    def client_settings(self) -> dict[str, Any]:
        """Settings that every client needs: ``ClientConfig(**cluster.client_settings)``.

        The name server, and with ``security`` certificates and keys.
        """
        return {"name_server": self.name_server, **self._secured.client_settings}

    @property
    def exposed_ports(self) -> list[int]:
        """Ports that listen on every address: of replication (brokers 4.x, or with slaves) and of a proxy."""
        ports = [server.ha_port for server in self.servers if server.ha_port and listens(server.ha_port)]
        return [*ports, *(server.port for server in self.servers if server.is_proxy)]

    @property
    def _broker_servers(self) -> Sequence[Server]:
        return [server for server in self.servers[1:] if not server.is_proxy]

    def start(self) -> Self:
        """Start the servers and wait until all answer. After an error none of them is left running.

        Raises:
            ClusterError: no Java, no jars, directory or port in use, or a server that does not start. Or it
                was started already, and runs on.
        """
        if self._lock is not None:
            raise ClusterError("this cluster was started already: make another LocalCluster")
        self._java = find_java()
        try:
            directory = self._occupy()
            if self._security is not None:
                self._secured = secure(directory, self._security)
            self._servers = self._plan(directory)
            if self._jars is None:
                self._jars = ensure_jars(self._wanted, progress=self._progress)
            self._start_all()
        except BaseException:
            self._end(grace=0)
            raise
        log.info("cluster_started", directory=str(directory), name_server=self.name_server)
        return self

    def stop(self) -> None:
        """Stop the servers. Keeps the data if a directory was given. A second call does nothing."""
        # data that are removed anyway need not be stored first
        self._end(grace=0 if self._temporary else STOP_GRACE)

    def stop_server(self, name: str) -> bool:
        """Stop one server as an operator would (SIGTERM), and kill it after 30 s; return whether it ran.

        Args:
            name: ``broker-a``, ``broker-a-slave-1``, ..., ``namesrv`` or ``proxy``.

        Raises:
            ClusterError: not running, or there is no such server.
        """
        return self._running.end(self._named(name).name, grace=STOP_GRACE)

    def kill_server(self, name: str) -> bool:
        """End one server as a crash would (SIGKILL); return whether it ran. See :meth:`stop_server`."""
        return self._running.end(self._named(name).name, grace=0)

    def start_server(self, name: str, *, wait: bool = True) -> bool:
        """Start a server that was stopped or has died; return whether it had to be started.

        Args:
            name: as for :meth:`stop_server`.
            wait: return when it answers; a broker is registered then, with a name server all that run are.

        Raises:
            ClusterError: not running, there is no such server, or it does not start.
        """
        server = self._named(name)
        if self._running.runs(name):
            return False
        self._start([server])
        if wait:
            self.await_server(name)
        return True

    def await_server(self, name: str) -> None:
        """Wait until a server that runs answers. A broker is registered then; with a name server, all are.

        Raises:
            ClusterError: as :meth:`start_server`.
        """
        server, first = self._named(name), self.servers[0]
        running = [one for one in self._broker_servers if self._running.runs(one.name)]
        awaited = running if server is first else [server]
        with self._probe([first, *awaited]) as probe:
            if server.is_proxy:
                probe.await_proxy(server)
            else:
                probe.await_brokers(awaited)

    def detach(self) -> None:
        """Let the servers run on without this process; :func:`stop_cluster` stops them.

        Raises:
            ClusterError: not running, or the directory is temporary and would never be removed.
        """
        children = self._running
        if self._temporary:
            raise ClusterError(
                f"{self.directory} is temporary: give a directory to a cluster that is detached"
            )
        children.state(owner=os.getpid(), detached=True).persist(self.directory)
        children.release()
        self._forget_servers()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _occupy(self) -> Path:
        """Lock the directory and stop the servers that a killed process left there."""
        if self._asked_directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="rmqtools-cluster-")
        directory = Path(self._temporary.name if self._temporary else str(self._asked_directory)).resolve()
        lock = FileLock(directory / "lock")
        try:
            is_free = lock.acquire(wait=False)
        except OSError as error:
            raise ClusterError(f"{directory} cannot be used: {error}: give another directory") from error
        if not is_free:
            raise ClusterError(
                f"{directory} is in use: process {lock.holder()} starts or runs a cluster there; "
                "end that process or give another directory"
            )
        self._lock = lock
        _clear(directory)
        return directory

    def _plan(self, directory: Path) -> tuple[Server, ...]:
        picker = PortPicker()
        asked = [picker.broker_port(port) for port in self._broker_ports or ()]  # before any is picked
        first = name_server(directory, picker.name_server_port(self._asked_port), secured=self._secured)
        ports = asked or [picker.broker_port() for _ in range(self._brokers)]
        masters = [
            broker(
                index,
                port,
                name_server=first,
                settings={**(replicating(port) if self._slaves else {}), **self._settings},
                timer_wheel=self._timer_wheel,
                secured=self._secured,
            )
            for index, port in enumerate(ports)
        ]
        slaves = [
            slave(master, broker_id, picker.broker_port())
            for master in masters
            for broker_id in range(1, self._slaves + 1)
        ]
        last = [proxy(*picker.proxy_ports(), name_server=first)] if self._has_proxy else []
        return (first, *masters, *slaves, *last)

    def _start_all(self) -> None:
        """Start the name server first, then all brokers at once: they connect to it early in their start."""
        self._children = Children(self.directory)
        with self._probe(self._servers) as probe:
            self._start(self._servers[:1])
            probe.await_name_server()
            self._start(self._broker_servers)
            probe.await_brokers(self._broker_servers)
            if self._has_proxy:  # it ends at once where no broker is registered
                self._start(self._servers[-1:])
                probe.await_proxy(self._servers[-1])
        if self._security is not None and (exposed := self.exposed_ports):
            raise ClusterError(
                f"port {', '.join(map(str, exposed))} listens on every address and gives stored messages to "
                "everybody: a secured cluster has no slaves; leave brokerRole and haListenPort out"
            )

    def _probe(self, awaited: Sequence[Server]) -> ReadinessProbe:
        """Return a probe that gives up when one of these servers has ended."""
        return ReadinessProbe(
            ClientConfig.from_mapping({k: str(v) for k, v in self.client_settings.items()}),
            timeout=self._start_timeout,
            check=partial(self._running.refuse_dead, [server.name for server in awaited]),
            logs=f"{self.directory}/*/server.log",
        )

    @property
    def _running(self) -> Children:
        if self._children is None:
            raise ClusterError(_NOT_RUNNING)
        return self._children

    def _named(self, name: str) -> Server:
        for server in self.servers:
            if server.name == name:
                return server
        raise ClusterError(unknown_name("server", name, [server.name for server in self.servers]))

    def _start(self, servers: Sequence[Server]) -> None:
        assert self._jars is not None
        for server in servers:
            self._running.start(server, self._java, self._jars)
            self._running.state(owner=os.getpid(), detached=False).persist(self.directory)

    def _end(self, *, grace: float) -> None:
        if self._children is not None:
            self._children.stop(grace=grace)
            remove_state(self.directory)
            log.info("cluster_stopped", directory=str(self.directory))
        self._forget_servers()

    def _forget_servers(self) -> None:
        """Forget the cluster and release the directory."""
        self._children, self._servers = None, ()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def stop_cluster(directory: Path) -> list[int]:
    """Stop all servers of ``directory``, also those of other processes; return the pids. Keeps the data."""
    directory = directory.resolve()
    stopped = stop_processes(directory, grace=STOP_GRACE)
    remove_state(directory)
    return stopped


def _clear(directory: Path) -> None:
    """Refuse a directory with a detached cluster; stop the servers that a killed owner left."""
    state = load_state(directory)
    living = find_processes(directory)
    if state is not None and state.detached and living:
        pids = ", ".join(map(str, living))
        raise ClusterError(
            f"{directory} is in use: a cluster runs there (pid {pids}, name server {state.name_server}); "
            f"stop it (rmqtools cluster down --dir {directory}) or give another directory"
        )
    stop_processes(directory, grace=0)
    remove_state(directory)
