"""Real RocketMQ servers on this machine, for trials and tests."""

from rmqtools.cluster.errors import ClusterError
from rmqtools.cluster.jars import DownloadProgress, ensure_jars
from rmqtools.cluster.local import LocalCluster, stop_cluster
from rmqtools.cluster.one_server import start_server, stop_server
from rmqtools.cluster.security import ClusterSecurity
from rmqtools.cluster.state import ServerStatus, fetch_status

__all__ = [
    "ClusterError",
    "ClusterSecurity",
    "DownloadProgress",
    "LocalCluster",
    "ServerStatus",
    "ensure_jars",
    "fetch_status",
    "start_server",
    "stop_cluster",
    "stop_server",
]
