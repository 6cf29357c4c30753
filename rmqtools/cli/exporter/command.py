"""The command ``rmqtools exporter``. Imports prometheus_client only when it runs."""

from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from rmqtools import Admin, Client, ClientConfig
from rmqtools.cli.connection import NameServer, Settings, client_config
from rmqtools.cli.moments import duration_option
from rmqtools.cli.printing import ends_quietly, say
from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import ConfigError

if TYPE_CHECKING:
    from rmqtools.cli.exporter.metrics import ClusterCollector


def exporter(
    name_server: NameServer = "",
    address: Annotated[
        str, typer.Option(metavar="HOST", help="Where to listen; 0.0.0.0: on every address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free one, which is printed.")
    ] = 5557,
    interval: Annotated[float, duration_option("Time between two looks at the cluster.", least=1)] = 15.0,
    deadline: Annotated[
        float, duration_option("A look begins no further group or topic after this.", least=1)
    ] = 30.0,
    settings: Settings = None,
) -> None:
    """Serve metrics for Prometheus: lag, age, findings and dead letters of all groups, and of servers.

    Prometheus gets the numbers of the last look: its requests do not reach the cluster. Groups,
    topics and brokers that could not be read in time are left out; rmqtools_exporter_failures counts them.
    While a look takes longer than the interval and twice the deadline, there are no numbers, and
    rmqtools_exporter_up is 0. Needs the extra prometheus.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server

        from rmqtools.cli.exporter.metrics import ClusterCollector
    except ImportError as error:
        raise ConfigError(
            f"rmqtools exporter needs prometheus-client ({error}): pip install 'rmqtools[prometheus]'"
        ) from error
    config = client_config(name_server, settings, ClientConfig)
    collector = ClusterCollector(keep=interval + 2 * deadline, deadline=deadline)
    registry = CollectorRegistry()
    registry.register(collector)
    with ends_quietly():
        try:
            server, thread = start_http_server(port, address, registry)
        except OSError as error:
            raise ConfigError(f"{address}:{port} cannot be used: {error}: give another --port") from error
        say(f"http://{address}:{server.server_port}/metrics has {config.name_server}, every {interval:g} s")
        try:
            with Client(config) as client:
                _look_for_ever(client, collector, interval)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _look_for_ever(client: Client, collector: "ClusterCollector", interval: float) -> None:
    while True:
        start = SYSTEM_CLOCK.monotonic()
        collector.look(Admin(client, partial=True))  # a new one asks brokers again that did not answer
        Event().wait(max(0.0, start + interval - SYSTEM_CLOCK.monotonic()))
