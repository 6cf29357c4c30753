"""Names of enums that this version does not know fail no header."""

import pytest

from rmqtools.model.codes import BoundaryType
from rmqtools.protocol.headers.codec import decode_header
from rmqtools.protocol.headers.offset import SearchOffsetRequestHeader

FIELDS = {"topic": "T", "queueId": "0", "timestamp": "1"}


@pytest.mark.parametrize(("text", "wanted"), [("upper", BoundaryType.UPPER), ("MIDDLE", None), ("", None)])
def test_an_unknown_name_is_read_as_none(text, wanted):
    assert decode_header(SearchOffsetRequestHeader, FIELDS | {"boundaryType": text}).boundary_type == wanted
