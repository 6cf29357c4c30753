"""TLS of connections: the settings' files, and what a failed connection means.

Nothing ever asks for a password: an encrypted key without one is a :class:`ConfigError`.

- With TLS 1.3 a server refuses a client's certificate only after the handshake, so the alert is the first
  thing that is read. A connection that ended before its first byte came is explained by
  ``engine.connection.tls``; it is not tried again.
- Brokers 5.5.0 answer no TLS goodbye: closing waits 0.1 s for one.
"""

import ssl

from rmqtools.config.client import ClientConfig
from rmqtools.engine.connection.opening import Step
from rmqtools.errors import ConfigError
from rmqtools.model.secret import reveal

_CERTIFICATE_REMEDIES = {  # by OpenSSL's verify code
    10: "the server's certificate has expired: it must be renewed on the server",
    18: "the server signed its certificate itself: set tls_ca_file to that certificate",
    62: "the server's certificate is for another host: connect by its name, or set tls_check_hostname=False",
    64: "the server's certificate is for another address: connect by that, or set tls_check_hostname=False",
}
_UNKNOWN_AUTHORITY = "set tls_ca_file to the certificate of the authority that signed the server's"
_NO_TLS_THERE = "the port does not seem to speak TLS: leave out tls_enable, or give the server's TLS port"
_OWN_CERTIFICATE = (
    "set tls_cert_file and tls_key_file to a certificate that the server's authority has signed"
)
_REFUSED_CERTIFICATE = (
    "the server does not accept this client's certificate: set tls_cert_file and tls_key_file to one that is "
    "valid now and that the server's authority has signed"
)
_ALERTS = {  # by words in OpenSSL's reason
    "CERTIFICATE_REQUIRED": f"the server needs a client certificate: {_OWN_CERTIFICATE}",
    "HANDSHAKE_FAILURE": f"the server may want a client certificate: {_OWN_CERTIFICATE}",
    # Java's servers: no certificate at all
    "BAD_CERTIFICATE": f"the server needs a client certificate, or another one: {_OWN_CERTIFICATE}",
    "CERTIFICATE_UNKNOWN": _REFUSED_CERTIFICATE,
    "CERTIFICATE_EXPIRED": _REFUSED_CERTIFICATE,
    "UNKNOWN_CA": _REFUSED_CERTIFICATE,
    "UNSUPPORTED_CERTIFICATE": _REFUSED_CERTIFICATE,
    "DECRYPT_ERROR": _REFUSED_CERTIFICATE,
    "WRONG_VERSION_NUMBER": _NO_TLS_THERE,
    "RECORD_LAYER_FAILURE": _NO_TLS_THERE,
}


def tls_context(config: ClientConfig) -> ssl.SSLContext | None:
    """Return the context of a client's connections; None: plain text.

    Raises:
        ConfigError: a file cannot be used, or the key is encrypted and its password is missing or wrong.
    """
    if not config.tls_enable:
        return None
    try:
        context = ssl.create_default_context(cafile=config.tls_ca_file)
        context.check_hostname = config.tls_check_hostname
        if config.tls_cert_file:
            context.load_cert_chain(config.tls_cert_file, config.tls_key_file, lambda: _password(config))
    except ConfigError:
        raise
    except (OSError, ValueError) as error:  # an SSLError is an OSError; ValueError: a NUL in a path
        files = [config.tls_ca_file, config.tls_cert_file, config.tls_key_file]
        hint = "; does tls_key_password open the key?" if config.tls_key_password else ""
        raise ConfigError(f"TLS files {[f for f in files if f]} cannot be used: {error}{hint}") from error
    return context


def _password(config: ClientConfig) -> str:
    """Return the password of an encrypted key. Called by OpenSSL, which otherwise asks on the terminal."""
    if config.tls_key_password is None:
        file = config.tls_key_file or config.tls_cert_file
        raise ConfigError(f"the key in {file!r} is encrypted: set tls_key_password, or use a key without one")
    return reveal(config.tls_key_password)


def why_no_connection(error: BaseException, step: Step) -> tuple[str, bool]:
    """Return what a failed connection means.

    Args:
        error: what connecting raised.
        step: the step that failed.

    Returns:
        The step with its reason and remedy; and whether trying again is useless until a setting or a
        certificate has changed.
    """
    if isinstance(error, ssl.SSLError):
        return f"{step} failed: {_with_remedy(error)}", True
    if step is Step.HANDSHAKE and isinstance(error, ConnectionError):
        return f"{step} failed: the server closed the connection: {_NO_TLS_THERE}", True
    return f"{step} failed: {str(error) or repr(error)}", False


def why_hung_up(cause: BaseException | None, *, tls: bool) -> tuple[str, bool] | None:
    """Return what it means that a peer ended a connection before it sent a byte; None: nothing special.

    Returns:
        As :func:`why_no_connection`.
    """
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed: {_with_remedy(cause)}", True
    if cause is not None and not tls:
        return None  # it broke; a server that refuses plain text closes it properly
    if tls:
        return (
            f"closed by the peer before it sent a byte; if it needs a client certificate: {_OWN_CERTIFICATE}",
            True,
        )
    return (
        "closed by the peer before it sent a byte; if it accepts nothing but TLS: set tls_enable=True",
        True,
    )


def _with_remedy(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = _CERTIFICATE_REMEDIES.get(error.verify_code, _UNKNOWN_AUTHORITY)
        return f"certificate verify failed: {error.verify_message}; {remedy}"
    reason = error.reason or str(error) or repr(error)
    remedy = next((text for word, text in _ALERTS.items() if word in reason.upper()), "")
    return reason + (f"; {remedy}" if remedy else "")
