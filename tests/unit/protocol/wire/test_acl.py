from hypothesis import given
from hypothesis import strategies as st

from rmqtools.protocol.wire.acl import AclSigner, signed_content
from rmqtools.protocol.wire.command import RemotingCommand
from tests.unit.protocol.messages.stored_cases import TEXTS

SIGNER = AclSigner("ak", "secret", "token")
ADDED = {"AccessKey", "SecurityToken", "Signature"}
FIELDS = st.dictionaries(TEXTS.filter(lambda name: name not in ADDED), TEXTS, max_size=4)


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
