"""One server: its files, its settings, its command line.

Everything of a server is under ``<directory>/<name>``: ``conf``, ``output.log`` (what the JVM
prints), ``server.log`` (what RocketMQ logs) and, for a broker, ``store``.
"""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rmqtools.cluster.ports import LOOPBACK
from rmqtools.cluster.processes import mark

CLUSTER_NAME = "DefaultCluster"
_NAME_SERVER_CLASS = "org.apache.rocketmq.namesrv.NamesrvStartup"
_BROKER_CLASS = "org.apache.rocketmq.broker.BrokerStartup"
_NAME_SERVER_MEMORY = ("-Xms32m", "-Xmx48m", "-XX:MaxDirectMemorySize=32m")
_BROKER_MEMORY = ("-Xms96m", "-Xmx96m", "-XX:MaxDirectMemorySize=192m")
_TIMER_WHEEL_MEMORY = ("-Xms96m", "-Xmx160m", "-XX:MaxDirectMemorySize=256m")  # the wheel takes 39 MB of each

_JVM = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # the first compiler only: starts fast, needs little
    "-XX:CICompilerCount=1",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:+ExitOnOutOfMemoryError",  # otherwise a broker without its main thread lives on
    "-Dtls.server.mode=disabled",  # the default makes an RSA key at every start
)

_BROKER_SETTINGS: Mapping[str, str] = {
    "brokerClusterName": CLUSTER_NAME,
    "brokerId": "0",
    "brokerRole": "ASYNC_MASTER",
    "flushDiskType": "ASYNC_FLUSH",
    "autoCreateTopicEnable": "true",
    "autoCreateSubscriptionGroup": "true",
    # switched off by default, needed by clients that are to be tried out here
    "enablePropertyFilter": "true",
    "recallMessageEnable": "true",
    "traceTopicEnable": "true",
    "transactionMetricFlushInterval": "500",  # a broker spins one core for this long (10 s) after its start
    "registerNameServerPeriod": "10000",
    "brokerNotActiveTimeoutMillis": "10000",
    # each thread that stores keeps 4 MB of direct memory, of which a broker has 64 MB here
    "endTransactionThreadPoolNums": "2",
    "processReplyMessageThreadPoolNums": "2",
    "ackMessageThreadPoolNums": "2",
    "pullMessageThreadPoolNums": "4",  # they store too, what was popped
    "diskMaxUsedSpaceRatio": "95",  # no write refused because the disk is 90 % full
    # small files: the sizes are per file, more files are made as needed
    "mappedFileSizeCommitLog": str(64 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": "600000",  # a multiple of 20, the size of an entry
    "maxHashSlotNum": "50000",
    "maxIndexNum": "200000",
}

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
    """A name server or a broker that is to be started."""

    name: str
    port: int
    directory: Path  # of the cluster
    main_class: str
    memory: Sequence[str]
    settings: Mapping[str, str]

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
        """What its JVM prints: one boot message, or the reason why there is none."""
        return self.home / "output.log"

    @property
    def log(self) -> Path:
        """What RocketMQ logs; none if the JVM ended before."""
        return self.home / "server.log"

    def write_conf(self) -> None:
        """Write the files that its command line, and its class path, point to."""
        conf = self.home / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        lines = (f"{key}={_escape(value)}\n" for key, value in self.settings.items())
        (conf / "server.conf").write_text("".join(lines), encoding="ascii")
        (conf / "rmq.logback.xml").write_text(_LOGBACK, encoding="ascii")

    def variables(self, jars: Sequence[Path]) -> dict[str, str]:
        """Return the environment: this process's, less what would change a server, plus the class path."""
        unwanted = ("NAMESRV_ADDR", "ROCKETMQ_HOME", "JAVA_OPT", "JAVA_OPT_EXT")
        kept = {key: value for key, value in os.environ.items() if key not in unwanted}
        return {**kept, "CLASSPATH": os.pathsep.join(map(str, (self.home / "conf", *jars)))}

    def command(self, java: str) -> list[str]:
        """Return the command line; :meth:`variables` goes with it."""
        return [
            java,
            mark(self.directory),
            *self.memory,
            *_JVM,
            f"-Duser.home={self.home}",  # where it logs, and where it puts what no setting names
            f"-Djava.io.tmpdir={self.home}",  # a native library of 12 MB is unpacked at every start
            f"-Drocketmq.home.dir={self.home}",
            self.main_class,
            "-c",
            str(self.home / "conf" / "server.conf"),
        ]


def name_server(directory: Path, port: int) -> Server:
    """Return the name server of a cluster in ``directory``."""
    return Server(
        name="namesrv",
        port=port,
        directory=directory,
        main_class=_NAME_SERVER_CLASS,
        memory=_NAME_SERVER_MEMORY,
        settings={"bindAddress": LOOPBACK, "listenPort": str(port)},
    )


def broker(
    index: int, port: int, *, name_server: Server, settings: Mapping[str, str], timer_wheel: bool
) -> Server:
    """Return broker number ``index`` (0: broker-a), which registers at ``name_server``."""
    name = f"broker-{chr(ord('a') + index)}"
    store = name_server.directory / name / "store"
    own = {
        "brokerName": name,
        "namesrvAddr": name_server.address,
        "bindAddress": LOOPBACK,
        "brokerIP1": LOOPBACK,
        "brokerIP2": LOOPBACK,
        "listenPort": str(port),
        "storePathRootDir": str(store),
        "storePathCommitLog": str(store / "commitlog"),
        "timerWheelEnable": str(timer_wheel).lower(),
    }
    return Server(
        name=name,
        port=port,
        directory=name_server.directory,
        main_class=_BROKER_CLASS,
        memory=_TIMER_WHEEL_MEMORY if timer_wheel else _BROKER_MEMORY,
        settings={**_BROKER_SETTINGS, **own, **settings},
    )


def tail(path: Path, count: int = 8) -> str:
    """Return the last lines of a log less the frames of Java stacks, or say that there are none."""
    if not path.exists():
        return "(nothing written)"
    with path.open(encoding="utf-8", errors="replace") as lines:
        told = (line for line in lines if not line.startswith(("\tat ", "\t... ")))
        return "".join(deque(told, maxlen=count)).rstrip() or "(nothing written)"


def _escape(value: str) -> str:
    """Write a value for Java's Properties: a backslash escapes, the file is Latin-1."""
    units = value.encode("utf-16-be")
    codes = (int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2))
    return "".join(chr(c) if 32 <= c < 127 and c != 92 else f"\\u{c:04x}" for c in codes)
