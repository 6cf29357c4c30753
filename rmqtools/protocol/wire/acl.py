"""Signs requests for brokers with access control (ACL 1.0 and 2.0).

    Signature = base64(HMAC-SHA1(secret key, values of all ext fields in the order of their names || body))

AccessKey and SecurityToken are included, Signature is not. Names are sorted by UTF-16 unit, like Java's
strings.
Source of the rule: AclClientRPCHook, AclSigner (Java client).
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import field, replace

from rmqtools.errors import ProtocolError
from rmqtools.model.record import record
from rmqtools.model.secret import Secret, reveal
from rmqtools.protocol.wire.command import RemotingCommand


@record(kw_only=False)
class AclSigner:
    """Credentials that sign requests. The secrets never show."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "secret_key", Secret(self.secret_key))
        if self.security_token is not None:
            object.__setattr__(self, "security_token", Secret(self.security_token))

    def sign(self, command: RemotingCommand) -> RemotingCommand:
        """Return the request with AccessKey, SecurityToken and Signature among its ext fields.

        Raises:
            ProtocolError: a text that is no Unicode (a lone surrogate).
        """
        fields = {
            key: value
            for key, value in command.ext_fields.items()
            if value is not None and key != "Signature"
        }
        fields["AccessKey"] = self.access_key
        if self.security_token is not None:
            fields["SecurityToken"] = reveal(self.security_token)
        try:
            mac = hmac.new(
                reveal(self.secret_key).encode(), signed_content(fields, command.body), hashlib.sha1
            )
        except UnicodeEncodeError as error:
            raise ProtocolError(
                f"request {command.code} or its credentials hold text that is no Unicode: {error}"
            ) from error
        return replace(command, ext_fields=fields | {"Signature": base64.b64encode(mac.digest()).decode()})


def signed_content(fields: Mapping[str, str], body: bytes) -> bytes:
    """Return the bytes that are signed."""
    return "".join(fields[key] for key in sorted(fields, key=_utf16)).encode() + body


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")
