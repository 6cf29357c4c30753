"""Values of a header that this version does not know pass through: they fail no frame."""

import json

import pytest

from rmqtools.protocol.wire.command import decode_command
from rmqtools.protocol.wire.framing import Frame


def decoded(**fields):
    return decode_command(
        Frame(0, json.dumps({"code": 0, "opaque": 7, "flag": 1} | fields).encode(), b"body")
    )


@pytest.mark.parametrize("language", ["COBOL", "", "java", None, 3, 2.5, True, ["JAVA"], {"name": "JAVA"}])
def test_a_language_nobody_knows_fails_no_frame(language):
    assert (decoded(language=language).language, decoded(language=language).body) == (None, b"body")


@pytest.mark.parametrize("version", [None, "V5_9_9", 2**31, -(2**40), 1.5, True, [], {}])
def test_a_version_nobody_knows_fails_no_frame(version):
    assert (decoded(version=version).version, decoded(version=version).opaque) == (0, 7)


@pytest.mark.parametrize("form", ["ROCKETMQ", "XML", None, 5, []])
def test_a_serialize_type_in_the_header_fails_no_frame(form):
    assert decoded(serializeTypeCurrentRPC=form).body == b"body"


@pytest.mark.parametrize("fields", [{}, None, [], "", 0, False])
def test_ext_fields_that_are_empty_in_whichever_way_are_none(fields):
    assert dict(decoded(extFields=fields).ext_fields) == {}


@pytest.mark.parametrize("name", ["flag", "opaque"])
def test_a_number_that_is_null_is_zero(name):
    assert getattr(decoded(**{name: None}), name) == 0
