"""The one error of the local cluster."""

from rmqtools.errors import RocketMQError


class ClusterError(RocketMQError):
    """Servers could not be fetched, started or found. The text names thing, value and remedy."""
