"""Jars through a company's proxy that opens TLS: real Java, and the Ivy that PySpark ships."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from rmqtools.cluster import ClusterError, ensure_jars
from rmqtools.cluster.java import find_java
from rmqtools.cluster.lock import locked_jars

pytestmark = pytest.mark.broker

IVY_SETTINGS = """<ivysettings>
<settings defaultResolver="proxied"/>
<resolvers><ibiblio name="proxied" m2compatible="true" root="https://127.0.0.1:{port}/"/></resolvers>
</ivysettings>
"""


class NothingThere(BaseHTTPRequestHandler):
    """Answers 404 to everything, silently."""

    def do_HEAD(self) -> None:
        self.send_error(404)

    do_GET = do_HEAD

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    """The port of an HTTPS server whose certificate Java does not know."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with ThreadingHTTPServer(("127.0.0.1", 0), NothingThere) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_the_first_line_says_that_java_does_not_trust_the_certificate(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(Path(find_java()).resolve().parents[1]))
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(IVY_SETTINGS.format(port=port))
    monkeypatch.setenv("IVY_SETTINGS", str(settings))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RMQTOOLS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no Maven

    with pytest.raises(ClusterError) as caught:
        ensure_jars(locked_jars()[:1])

    first = str(caught.value).splitlines()[0]
    assert first.startswith("Ivy could not fetch the server's jars: Java does not trust the certificate")
    assert "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE" in first
