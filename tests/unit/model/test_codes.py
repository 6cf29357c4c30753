import pytest

from rmqtools.model.codes import LanguageCode, RequestCode, ResponseCode, SerializeType


@pytest.mark.parametrize("code_class", [RequestCode, ResponseCode, LanguageCode, SerializeType])
def test_every_number_has_one_name(code_class):
    assert len(code_class.__members__) == len(list(code_class))


def test_of_gives_the_member_or_the_number_itself():
    assert ResponseCode.of(17) is ResponseCode.TOPIC_NOT_EXIST
    assert ResponseCode.of(9999) == 9999
    assert not isinstance(ResponseCode.of(9999), ResponseCode)


@pytest.mark.parametrize(
    ("code", "text"),
    [(17, "TOPIC_NOT_EXIST (17)"), (0, "SUCCESS (0)"), (-1006, "RPC_TIME_OUT (-1006)"), (9999, "code 9999")],
)
def test_describe_says_name_and_number(code, text):
    assert ResponseCode.describe(code) == text
    assert ResponseCode.describe(ResponseCode.of(code)) == text
