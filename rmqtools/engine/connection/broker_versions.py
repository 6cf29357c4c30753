"""The versions of brokers, taken from their answers: some features are used only if the broker has them.

A proxy forwards the request by broker name, so its answer has the broker's own version.
"""

from rmqtools.engine.connection.endpoint import check_version
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import RemotingConnectError, RemotingError
from rmqtools.model.codes import RequestCode
from rmqtools.policy.endpoint.features import Feature
from rmqtools.policy.endpoint.versions import parse_version
from rmqtools.protocol.headers.offset import GetMinOffsetRequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request


class BrokerVersions:
    """The known versions of brokers. A broker that is too old is asked again: it may have been upgraded."""

    def __init__(self, remoting: Remoting) -> None:
        self._remoting = remoting
        self._versions: dict[tuple[str, str], int] = {}  # by broker name and address

    async def check(
        self,
        feature: Feature,
        *,
        broker_name: str,
        addr: str,
        wire_topic: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Refuse a feature that a broker, or the proxy in front of it, does not have.

        Args:
            feature: the feature to use.
            broker_name: the broker set.
            addr: the address to ask.
            wire_topic: a topic on that broker; None: ask without one, not through a proxy.
            timeout: seconds for the request, which is sent only if no version is known; None:
                ``request_timeout``.

        Raises:
            UnsupportedError: names the feature, the server and the remedy.
            RemotingConnectError: the broker did not answer this request: nothing else was sent.
        """
        self._remoting.endpoint.require(feature)
        key = (broker_name, addr)
        if self._versions.get(key, 0) < parse_version(feature.since):
            self._versions[key] = await self._ask(broker_name, addr, wire_topic, timeout)
            check_version(feature, self._versions[key], broker_name=broker_name, addr=addr)

    async def _ask(self, broker_name: str, addr: str, topic: str | None, timeout: float | None) -> int:
        command = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
        if topic is not None:
            command = request(GetMinOffsetRequestHeader(topic=topic, queue_id=0, bname=broker_name))
        try:
            return (await self._remoting.invoke(addr, command, timeout=timeout)).version
        except RemotingError as error:
            text = f"{broker_name} did not tell its version, so nothing was sent: {error}"
            raise RemotingConnectError(text) from error
