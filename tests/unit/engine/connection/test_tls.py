import asyncio
import ssl

import pytest

from rmqtools.config import ClientConfig
from rmqtools.engine.connection.opening import Step
from rmqtools.engine.connection.remoting import Remoting
from rmqtools.engine.connection.tls import tls_context, why_hung_up, why_no_connection
from rmqtools.errors import ConfigError, ConnectionLostError
from rmqtools.model.codes import RequestCode
from rmqtools.policy.retry import may_retry
from rmqtools.protocol.wire.command import RemotingCommand


def alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] something")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "needs a client certificate: set tls_cert_file"),
        (alert("SSLV3_ALERT_BAD_CERTIFICATE"), "needs a client certificate, or another one"),
        (alert("SSLV3_ALERT_CERTIFICATE_UNKNOWN"), "does not accept this client's certificate"),
        (alert("WRONG_VERSION_NUMBER"), "does not seem to speak TLS"),
        (
            ConnectionResetError(),
            "TLS handshake failed: the server closed the connection: the port does not seem",
        ),
    ],
    ids=lambda value: getattr(value, "reason", None) or type(value).__name__,
)
def test_a_failed_handshake_has_a_remedy_and_is_final(error, remedy):
    reason, is_final = why_no_connection(error, Step.HANDSHAKE)

    assert remedy in reason
    assert is_final


def test_other_failures_may_pass_and_are_never_without_a_reason():
    assert why_no_connection(ConnectionRefusedError(111, "refused"), Step.CONNECT) == (
        "connect failed: [Errno 111] refused",
        False,
    )
    assert why_no_connection(OSError(), Step.LOOK_UP) == ("name look-up failed: OSError()", False)


def test_a_connection_of_plain_text_that_breaks_says_nothing_about_tls():
    assert why_hung_up(ConnectionResetError(), tls=False) is None


def test_a_peer_that_hangs_up_on_tls_hangs_up_again():
    alert = ssl.SSLError(1, "alert")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"

    for cause, text in ((None, "if it needs a client certificate"), (alert, "CERTIFICATE_REQUIRED")):
        reason, is_final = why_hung_up(cause, tls=True) or ("", False)
        assert text in reason
        assert is_final


@pytest.mark.parametrize("is_name_server", [True, False], ids=["name server", "broker"])
async def test_a_broker_that_hangs_up_may_restart_and_a_name_server_wants_tls(is_name_server):
    async def disconnect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(disconnect, "127.0.0.1", 0) as server:
        addr = "{}:{}".format(*server.sockets[0].getsockname())
        remoting = Remoting(ClientConfig(name_server=addr if is_name_server else "127.0.0.1:1"))
        with pytest.raises(ConnectionLostError, match="set tls_enable=True") as lost:
            await remoting.invoke(addr, RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO))
        await remoting.close()
    assert may_retry(lost.value) is not is_name_server


@pytest.mark.parametrize("checks", [True, False])
def test_a_certificate_must_name_the_address_unless_that_is_switched_off(checks):
    config = ClientConfig(name_server="127.0.0.1:1", tls_enable=True, tls_check_hostname=checks)

    context = tls_context(config)

    assert context is not None
    assert (context.check_hostname, context.verify_mode) == (checks, ssl.CERT_REQUIRED)


@pytest.mark.parametrize("name", ["ca.pem", "a\0b"], ids=["no-certificate", "no-name"])
def test_a_file_that_cannot_be_used_is_named(name, tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    config = ClientConfig(name_server="127.0.0.1:1", tls_enable=True, tls_ca_file=f"{tmp_path}/{name}")

    with pytest.raises(ConfigError, match=r"TLS files \['.*(ca\.pem|a\\x00b)'\] cannot be used"):
        tls_context(config)
