"""A 5.x proxy in front of a local cluster that runs already."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtools import ClientConfig
from rmqtools.cluster import LocalCluster, ensure_jars
from rmqtools.cluster.children import Children
from rmqtools.cluster.java import find_java
from rmqtools.cluster.lock import locked_jars
from rmqtools.cluster.ports import PortPicker
from rmqtools.cluster.readiness import ReadinessProbe
from rmqtools.cluster.server import Server, proxy
from rmqtools.model.secret import reveal

if TYPE_CHECKING:
    from tests.support.shared_cluster import SharedCluster

_AUTH, _PROXY_AUTH = "org.apache.rocketmq.auth", "org.apache.rocketmq.proxy.auth"
_CHECKS = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{_PROXY_AUTH}.ProxyAuthenticationMetadataProvider",
    "authorizationEnabled": "true",
    "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{_PROXY_AUTH}.ProxyAuthorizationMetadataProvider",
}


@contextlib.contextmanager
def running_server(
    cluster: "LocalCluster | SharedCluster", directory: Path, *, signs: bool = False, checks: bool = False
) -> Iterator[Server]:
    """Start a proxy of ``cluster`` in a directory of its own, and stop it at the end.

    It accepts TLS as the cluster does.

    Args:
        signs: its requests to brokers are signed with the cluster's keys.
        checks: it checks its clients' keys and rights itself.
    """
    first = replace(cluster.servers[0], directory=directory)
    server = proxy(*PortPicker().proxy_ports(), name_server=first)
    config = ClientConfig.from_mapping({name: str(value) for name, value in cluster.client_settings.items()})
    own = {**(_keys(config) if signs else {}), **(_CHECKS if checks else {})}
    server = replace(server, settings={**server.settings, **own}, flags=cluster.servers[0].flags)
    if signs:
        server.write_conf()
        keys = json.loads(own["innerClientAuthenticationCredentials"])
        text = "".join(f"{name}: {value}\n" for name, value in keys.items())
        (server.home / "conf" / "tools.yml").write_text(text)
    children = Children(directory)
    try:
        children.start(server, find_java(), ensure_jars(locked_jars(proxy=True)))
        logs = f"{directory}/*/server.log"
        with ReadinessProbe(config, timeout=120.0, check=children.refuse_dead, logs=logs) as probe:
            probe.await_proxy(server)
        yield server
    finally:
        children.stop(grace=0)


def _keys(config: ClientConfig) -> dict[str, str]:
    """The settings of a proxy that signs its requests to brokers; the keys are in conf/tools.yml, too."""
    assert config.access_key is not None
    assert config.secret_key is not None
    keys = {"accessKey": config.access_key, "secretKey": reveal(config.secret_key)}
    return {
        "enableAclRpcHookForClusterMode": "true",
        "innerClientAuthenticationCredentials": json.dumps(keys),
    }
