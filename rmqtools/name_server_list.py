"""Fetches a list of name servers from an HTTP server. Blocks.

Source of the rule: MixAll.getWSAddr, DefaultTopAddressing (Java client).
"""

import re
import socket
import ssl
import urllib.request
from http.client import HTTPException
from urllib.error import HTTPError, URLError

from rmqtools.errors import ConfigError

_JAVA_PORT = 8080
_PATH = "/rocketmq/nsaddr"
_SECONDS = 3.0
_MAX_BYTES = 64 * 1024


def domain_url(domain: str) -> str:
    """Return the address to ask: ``http://host:8080/rocketmq/nsaddr``, with the parts that ``domain`` has.

    Raises:
        ConfigError: it is no HTTP address.
    """
    scheme, mark, rest = domain.strip().rpartition("://")
    host, slash, path = rest.partition("/")
    if not re.fullmatch(r"[^\s:@]+(:\d+)?|\[[^\]\s]+\](:\d+)?", host) or scheme not in ("", "http", "https"):
        raise ConfigError(
            f"name server domain {domain!r}: want 'host', 'host:port' or 'http://host:port/path'"
        )
    if not mark and not re.search(r":\d+$", host):
        host = f"{host}:{_JAVA_PORT}"
    return f"{scheme or 'http'}://{host}{slash + path if path else _PATH}"


def fetch_name_servers(domain: str) -> str:
    """Ask a domain for its name servers: ``host:port;host:port``. Proxies of the environment are not used.

    Raises:
        ConfigError: the address is not valid, does not answer, or names no server.
    """
    url = domain_url(domain)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_SECONDS) as answer:
            text = str(answer.read(_MAX_BYTES), "ascii").strip()
    except (OSError, ValueError, HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()  # it is the answer, with its socket
        raise ConfigError(
            f"name server domain {domain!r}: {url} gives no list of name servers ({_reason(error)}): "
            "check it, or name the servers themselves"
        ) from error
    if not text:
        raise ConfigError(f"name server domain {domain!r}: {url} names no server: its answer is empty")
    return text


def _reason(error: Exception) -> str:
    """Return the step that failed with its reason; the error itself where an answer came."""
    if not isinstance(error, URLError) or isinstance(error, HTTPError):
        return str(error) or repr(error)
    cause = error.reason
    if isinstance(cause, socket.gaierror):
        return f"name look-up failed: {cause}"
    return f"{'TLS handshake' if isinstance(cause, ssl.SSLError) else 'connect'} failed: {cause}"
