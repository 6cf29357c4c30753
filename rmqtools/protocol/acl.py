"""Signing of requests for brokers with access control (ACL 1.0 and 2.0 alike).

    Signature = base64(HMAC-SHA1(secret key, values of all ext fields in the order of their names || body))

AccessKey and SecurityToken take part, Signature itself does not. Names are ordered by UTF-16 unit, as Java's
strings are.
Source of the rule: AclClientRPCHook, AclSigner (Java client).
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rmqtools.protocol.command import RemotingCommand


@dataclass(frozen=True, slots=True)
class AclSigner:
    """Credentials that sign requests. The secret never shows in ``repr``."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def sign(self, command: RemotingCommand) -> RemotingCommand:
        """Return the request with AccessKey, SecurityToken and Signature among its ext fields."""
        fields = {
            key: value
            for key, value in command.ext_fields.items()
            if value is not None and key != "Signature"
        }
        fields["AccessKey"] = self.access_key
        if self.security_token is not None:
            fields["SecurityToken"] = self.security_token
        mac = hmac.new(self.secret_key.encode(), signed_content(fields, command.body), hashlib.sha1)
        return replace(command, ext_fields=fields | {"Signature": base64.b64encode(mac.digest()).decode()})


def signed_content(fields: Mapping[str, str], body: bytes) -> bytes:
    """The bytes the signature is made over."""
    return "".join(fields[key] for key in sorted(fields, key=_utf16)).encode() + body


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")
