import base64
import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from rmqtools.protocol.wire.acl import AclSigner, signed_content
from rmqtools.protocol.wire.command import RemotingCommand
from tests.unit.protocol.messages.stored_cases import TEXTS

SIGNER = AclSigner("ak", "secret", "token")
ADDED = {"AccessKey", "SecurityToken", "Signature"}
FIELDS = st.dictionaries(TEXTS.filter(lambda name: name not in ADDED), TEXTS, max_size=4)


def test_the_signature_is_hmac_sha1_over_the_values_in_order_of_their_names_and_the_body():
    signed = SIGNER.sign(RemotingCommand(10, {"b": "2", "a": "1", "Z": "0"}, b"body"))

    content = b"ak" + b"token" + b"0" + b"1" + b"2" + b"body"
    digest = hmac.new(b"secret", content, hashlib.sha1).digest()
    assert signed.ext_fields["Signature"] == base64.b64encode(digest).decode()


def test_without_security_token_none_is_sent():
    assert set(AclSigner("ak", "secret").sign(RemotingCommand(10)).ext_fields) == {"AccessKey", "Signature"}


@given(FIELDS, st.binary(max_size=20))
def test_signing_keeps_everything_else_of_the_command(fields, body):
    command = RemotingCommand(10, dict(fields), body, opaque=7)
    signed = SIGNER.sign(command)

    kept = {name: value for name, value in signed.ext_fields.items() if name not in ADDED}
    assert (command.ext_fields, kept, signed.body, signed.opaque) == (fields, fields, body, 7)


@given(FIELDS, st.binary(max_size=20))
def test_signing_again_changes_nothing(fields, body):
    signed = SIGNER.sign(RemotingCommand(10, fields, body))

    assert SIGNER.sign(signed) == signed


def test_a_field_that_is_null_is_neither_signed_nor_sent():
    signed = SIGNER.sign(RemotingCommand(10, {"a": "1", "gone": None}))

    assert signed == SIGNER.sign(RemotingCommand(10, {"a": "1"}))


def test_names_are_ordered_by_utf_16_unit_as_java_does():
    assert signed_content({"\uff21": "second", "😀": "first"}, b"") == b"firstsecond"


def test_secrets_do_not_show():
    assert repr(SIGNER) == "AclSigner(access_key='ak')"
