"""One server: its files, its settings, its command line.

All files of a server are under ``<directory>/<name>``: ``conf``, ``output.log`` (the JVM's
output), ``server.log`` (RocketMQ's log) and, for a broker, ``store``.

- Brokers 5.5.0 use one core for ever after their first transaction, once ``transactionOpBatchInterval`` (3 s)
  has passed without another. Our local brokers have an interval of a day and ``transactionOpMsgMaxSize=1``,
  which writes each end at once.
- Brokers 5.5.0 pop only with ``timerWheelEnable=true``. Without direct memory they stop answering pops and
  report nothing.
- Broker 5.5.0: TransactionMetricsFlushService uses a whole core for ``transactionMetricFlushInterval`` after
  start.
- Every broker thread that stores messages takes 4 MB of direct memory.
- A broker's replication listens on every address and gives all messages to everybody; no setting changes
  that. Brokers 5.x load their HAService through META-INF/service, so ``cluster/no_ha`` precedes the jars: it
  opens no port.
"""

import json
import os
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.ports import LOOPBACK
from rmqtools.cluster.processes import mark
from rmqtools.cluster.properties import format_properties
from rmqtools.cluster.security import Secured
from rmqtools.safe_file import PRIVATE, make_private, open_new, replace_text

CLUSTER_NAME = "DefaultCluster"
NAME_SERVER = "namesrv"
NO_HA = Path(__file__).with_name("no_ha")
"""A folder for the class path: brokers 5.x with it open no HA port, and so can have no slaves."""
_NAME_SERVER_CLASS = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER_CLASS = "org.apache.rocketmq.broker.BrokerStartup"
_PROXY_CLASS = "org.apache.rocketmq.proxy.ProxyStartup"
_NAME_SERVER_MEMORY = ("-Xms32m", "-Xmx48m", "-XX:MaxDirectMemorySize=32m")
_BROKER_MEMORY = ("-Xms96m", "-Xmx96m", "-XX:MaxDirectMemorySize=192m")
_TIMER_WHEEL_MEMORY = ("-Xms96m", "-Xmx160m", "-XX:MaxDirectMemorySize=256m")  # the wheel takes 39 MB of each

_PROXY_MEMORY = ("-Xms64m", "-Xmx128m", "-XX:MaxDirectMemorySize=128m")

_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # the first compiler only: starts fast, needs little
    "-XX:CICompilerCount=1",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:+ExitOnOutOfMemoryError",  # otherwise a broker without its main thread lives on
)

_BROKER_SETTINGS: Mapping[str, str] = {
    "brokerClusterName": CLUSTER_NAME,
    "brokerId": "0",
    "brokerRole": "ASYNC_MASTER",
    "flushDiskType": "ASYNC_FLUSH",
    "autoCreateTopicEnable": "true",
    "autoCreateSubscriptionGroup": "true",
    # switched off by default, but needed to try out clients
    "enablePropertyFilter": "true",
    "recallMessageEnable": "true",
    "traceTopicEnable": "true",
    "enableMixedMessageType": "true",
    "transactionMetricFlushInterval": "500",  # a broker spins one core for this long (10 s) after its start
    # Brokers 5.5.0 spin one core for ever once the last end of a transaction is older than this interval
    # (TransactionalMessageServiceImpl.batchSendOpMessage). With this size each end is written at once: none
    # waits for the interval.
    "transactionOpBatchInterval": str(24 * 60 * 60 * 1000),
    "transactionOpMsgMaxSize": "1",
    "registerNameServerPeriod": "10000",
    "brokerNotActiveTimeoutMillis": "10000",
    # each thread that stores messages keeps 4 MB of direct memory, and a broker has 64 MB here
    "endTransactionThreadPoolNums": "2",
    "processReplyMessageThreadPoolNums": "2",
    "ackMessageThreadPoolNums": "2",
    "pullMessageThreadPoolNums": "4",  # they also store, for pops
    "diskMaxUsedSpaceRatio": "95",  # no write refused because the disk is 90 % full
    # small files: the sizes are per file, more files are made as needed
    "mappedFileSizeCommitLog": str(64 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": "600000",  # a multiple of 20, the size of an entry
    "maxHashSlotNum": "50000",
    "maxIndexNum": "200000",
}

# 4.9 looks in conf for the last two.
_LOGBACK_FILES = ("rmq.logback.xml", "logback_namesrv.xml", "logback_broker.xml")
# Found on the class path before the servers' own ones, which have 60 appenders and cost a second at start.
_LOGBACK = """<configuration>
<appender name="FILE" class="ch.qos.logback.core.rolling.RollingFileAppender">
<file>${user.home}/server.log</file>
<rollingPolicy class="ch.qos.logback.core.rolling.FixedWindowRollingPolicy">
<fileNamePattern>${user.home}/server.%i.log</fileNamePattern><minIndex>1</minIndex><maxIndex>2</maxIndex>
</rollingPolicy>
<triggeringPolicy class="ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy">
<maxFileSize>20MB</maxFileSize>
</triggeringPolicy>
<encoder><pattern>%d{yyyy-MM-dd HH:mm:ss.SSS} %p %c %t - %m%n</pattern></encoder>
</appender>
<root level="INFO"><appender-ref ref="FILE"/></root>
</configuration>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A name server, a broker or a proxy that is to be started."""

    name: str
    port: int
    directory: Path  # of the cluster
    main_class: str
    memory: Sequence[str]
    settings: Mapping[str, str] = field(repr=False)  # a broker's may have a secret
    flags: Sequence[str] = ("-Dtls.server.mode=disabled",)  # the default makes an RSA key at every start

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def home(self) -> Path:
        """The directory of this server alone."""
        return self.directory / self.name

    @property
    def output(self) -> Path:
        """The JVM's output: one boot message, or the reason of a failure."""
        return self.home / "output.log"

    @property
    def log(self) -> Path:
        """RocketMQ's log; missing if the JVM ended before."""
        return self.home / "server.log"

    def write_conf(self) -> None:
        """Write the files that the command line and the class path name."""
        conf = self.home / "conf"
        make_private(self.home)
        make_private(conf)
        text = json.dumps(self.settings, indent=1) if self.is_proxy else format_properties(self.settings)
        replace_text(self._conf, text, mode=PRIVATE)
        for name in _LOGBACK_FILES:
            replace_text(conf / name, _LOGBACK, mode=PRIVATE)

    @property
    def is_proxy(self) -> bool:
        """True if it is a proxy, whose conf is JSON."""
        return self.main_class == _PROXY_CLASS

    @property
    def broker_name(self) -> str:
        """The name that a master shares with its slaves; for other servers :attr:`name`."""
        return self.settings.get("brokerName", self.name)

    @property
    def broker_id(self) -> int:
        """0: a master, or no broker at all."""
        return int(self.settings.get("brokerId", "0"))

    @property
    def ha_port(self) -> int | None:
        """The port of a broker's replication, which listens on every address; None: it has none."""
        if self.main_class != BROKER_CLASS:
            return None
        return int(self.settings.get("haListenPort", 0)) or self.port + 1  # 0 is the servers' default

    @property
    def _class_path(self) -> Sequence[Path]:
        alone = self.settings.get("brokerRole") == "ASYNC_MASTER" and "haListenPort" not in self.settings
        return (self.home / "conf", *([NO_HA] if alone else []))

    @property
    def _conf(self) -> Path:
        return self.home / "conf" / ("rmq-proxy.json" if self.is_proxy else "server.conf")

    def variables(self, jars: Sequence[Path]) -> dict[str, str]:
        """Return the environment of its process."""
        return server_environment(self.class_path(jars))

    def class_path(self, jars: Sequence[Path]) -> str:
        """Return the class path, in which files of ours come first."""
        return os.pathsep.join(map(str, (*self._class_path, *jars)))

    def command(self, java: str) -> list[str]:
        """Return the command line; :meth:`variables` goes with it."""
        return [
            java,
            mark(self.directory),
            *self.memory,
            *_JVM,
            *self.flags,
            f"-Duser.home={self.home}",  # where it logs, and where it puts what no setting names
            f"-Djava.io.tmpdir={self.home}",  # a native library of 12 MB is unpacked at every start
            f"-Drocketmq.home.dir={self.home}",
            self.main_class,
            "-pc" if self.is_proxy else "-c",
            str(self._conf),
        ]


def server_environment(class_path: str) -> dict[str, str]:
    """Return this process's environment without variables that change servers, plus the class path."""
    unwanted = ("NAMESRV_ADDR", "ROCKETMQ_HOME", "JAVA_OPT", "JAVA_OPT_EXT")
    kept = {key: value for key, value in os.environ.items() if key not in unwanted}
    return {**kept, "CLASSPATH": class_path}


def spawn(
    command: Sequence[str], home: Path, variables: Mapping[str, str], output: Path
) -> "subprocess.Popen[bytes]":
    """Start the process of a server, in a session of its own: Ctrl-C does not reach it.

    Args:
        command: its command line.
        home: its folder.
        variables: its environment.
        output: the file for what it prints.

    Raises:
        ClusterError: the program or the folder is missing, or cannot be used.
    """
    try:
        with open_new(output, mode=PRIVATE) as file:
            return subprocess.Popen(
                command,
                cwd=home,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        raise ClusterError(
            f"{command[0]} does not run in {home} ({error}): stop the cluster, and start it again"
        ) from error


def name_server(directory: Path, port: int, *, secured: Secured | None = None) -> Server:
    """Return the name server of a cluster in ``directory``."""
    return Server(
        **_flags(secured),
        name=NAME_SERVER,
        port=port,
        directory=directory,
        main_class=_NAME_SERVER_CLASS,
        memory=_NAME_SERVER_MEMORY,
        settings={"bindAddress": LOOPBACK, "listenPort": str(port)},
    )


def broker(
    index: int,
    port: int,
    *,
    name_server: Server,
    settings: Mapping[str, str],
    timer_wheel: bool,
    secured: Secured | None = None,
) -> Server:
    """Return master number ``index`` (0: broker-a), which registers at ``name_server``."""
    name = f"broker-{chr(ord('a') + index)}"
    own = {
        "brokerName": name,
        "namesrvAddr": name_server.address,
        "bindAddress": LOOPBACK,
        "brokerIP1": LOOPBACK,
        "brokerIP2": LOOPBACK,
        "timerWheelEnable": str(timer_wheel).lower(),
        **_place(name_server.directory / name, port),
    }
    return Server(
        name=name,
        port=port,
        directory=name_server.directory,
        main_class=BROKER_CLASS,
        memory=_TIMER_WHEEL_MEMORY if timer_wheel else _BROKER_MEMORY,
        settings={**_BROKER_SETTINGS, **own, **(secured.broker_settings if secured else {}), **settings},
        **_flags(secured),
    )


def replicating(port: int) -> dict[str, str]:
    """Return the settings of a master with slaves: it replicates, and slaves serve reads, too."""
    return {"haListenPort": str(port + 1), "slaveReadEnable": "true"}


def slave(master: Server, broker_id: int, port: int) -> Server:
    """Return slave number ``broker_id`` (1, 2, ...) of a master that replicates; it has the same settings."""
    name = f"{master.name}-slave-{broker_id}"
    own = {"brokerId": str(broker_id), "brokerRole": "SLAVE", "haListenPort": str(port + 1)}
    settings = {**master.settings, **_place(master.directory / name, port), **own}
    return replace(master, name=name, port=port, settings=settings)


def _place(home: Path, port: int) -> dict[str, str]:
    """Return the settings of a broker that no other server may have."""
    store = home / "store"
    return {
        "listenPort": str(port),
        "storePathRootDir": str(store),
        "storePathCommitLog": str(store / "commitlog"),
    }


def _flags(secured: Secured | None) -> dict[str, Sequence[str]]:
    return {"flags": secured.flags} if secured and secured.flags else {}


def proxy(port: int, grpc_port: int, *, name_server: Server) -> Server:
    """Return the proxy of a cluster, for clients of both protocols. It listens on every address.

    ``ProxyStartup`` makes its servers' settings itself and reads no bind address (5.5.0).
    """
    return Server(
        name="proxy",
        port=port,
        directory=name_server.directory,
        main_class=_PROXY_CLASS,
        memory=_PROXY_MEMORY,
        settings={
            "rocketMQClusterName": CLUSTER_NAME,
            "proxyMode": "cluster",
            "namesrvAddr": name_server.address,
            "remotingListenPort": str(port),
            "grpcServerPort": str(grpc_port),
            "remotingAccessAddr": LOOPBACK,  # the address in routes
            "localServeAddr": LOOPBACK,
            "enablePrintJstack": "false",
            "traceOn": "true",  # the default disables producers' traces
            "transactionHeartbeatPeriodSecond": "2",  # brokers find transaction members by it; default 20
        },
    )


def tail(path: Path, count: int = 8) -> str:
    """Return the last lines of a log without Java's stack frames, or a text that there are none."""
    if not path.exists():
        return "(nothing written)"
    with path.open(encoding="utf-8", errors="replace") as lines:
        told = (line for line in lines if not line.startswith(("\tat ", "\t... ")))
        return "".join(deque(told, maxlen=count)).rstrip() or "(nothing written)"
