"""Detects whether a client's servers are a proxy; raises errors for features that servers lack.

A proxy adds the fields TRACE_ON and MSG_REGION to its answers about routes, a name server does not.
Source of the rule: AbstractRemotingActivity.writeResponse (proxy 5.5.0).
"""

from collections.abc import Mapping

from rmqtools.errors import UnsupportedError
from rmqtools.log import get_logger
from rmqtools.model.codes import RequestCode
from rmqtools.model.message_const import PROPERTY_MSG_REGION
from rmqtools.policy.endpoint.features import Feature, feature_of
from rmqtools.policy.endpoint.versions import format_version, parse_version

log = get_logger(__name__)


class Endpoint:
    """The kind of servers behind ``name_server``."""

    def __init__(self) -> None:
        self._proxy_addr: str | None = None

    @property
    def is_proxy(self) -> bool:
        """True if a proxy was detected; the first answer about a route decides."""
        return self._proxy_addr is not None

    def note_route_answer(self, addr: str, ext_fields: Mapping[str, str | None]) -> None:
        """Detect a proxy from an answer about a route, successful or not."""
        if self._proxy_addr is None and PROPERTY_MSG_REGION in ext_fields:
            self._proxy_addr = addr
            log.info("proxy_found", addr=addr)

    def require(self, feature: Feature) -> None:
        """Refuse a feature that the proxy, if any, does not serve. Sends nothing.

        Raises:
            UnsupportedError: names the feature, the proxy and the remedy.
        """
        if self._proxy_addr is not None and not feature.through_proxy:
            raise UnsupportedError(
                f"{feature.name}: not served by the proxy at {self._proxy_addr}; {feature.instead}",
                feature.name,
                self._proxy_addr,
            )

    def no_name_server(self, addr: str, remark: str | None) -> UnsupportedError:
        """Return the error of a server that does not know routes, although it is given as name server."""
        return UnsupportedError(
            f"{addr} is a broker, not a name server: it knows no routes; set name_server to the address of a "
            "name server, whose port is 9876 by default",
            "routes of topics",
            addr,
            remark,
        )

    def not_served(self, code: int, remark: str | None, addr: str) -> UnsupportedError:
        """Return the error of a server that answered "request code not supported"."""
        asked, feature = RequestCode.describe(code), feature_of(code)
        if feature is None:
            return UnsupportedError(
                f"{addr} does not serve the request {asked}: {remark}", asked, addr, remark
            )
        kind = "a proxy" if self.is_proxy else "a proxy, or an older server"
        remedy = feature.instead if self.is_proxy or not feature.since else feature.on_old_brokers
        return UnsupportedError(
            f"{feature.name}: the request {asked} is not served by {addr} ({kind}); {remedy}",
            feature.name,
            addr,
            remark,
        )


def check_version(feature: Feature, version: int, *, broker_name: str, addr: str) -> None:
    """Refuse a feature that a broker of this version does not have.

    Raises:
        UnsupportedError: names the feature, the broker with its version, and the remedy.
    """
    if version < parse_version(feature.since):
        raise UnsupportedError(
            f"{feature.name}: brokers have them since {feature.since}, and {broker_name} at {addr} is "
            f"{format_version(version)}; {feature.on_old_brokers}",
            feature.name,
            addr,
        )
