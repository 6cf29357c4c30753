from rmqtools.model.codes import RequestCode
from rmqtools.policy.endpoint.features import BROKER_SHARES, FEATURES, PINS, feature_of, feature_rows
from rmqtools.policy.endpoint.versions import parse_version


def test_no_request_belongs_to_two_features():
    codes = [code for feature in FEATURES for code in feature.codes]

    assert len(codes) == len(set(codes))


def test_every_feature_that_a_proxy_refuses_says_what_to_do_instead():
    assert {each.name for each in FEATURES if not each.through_proxy and not each.instead} == set()


def test_every_version_can_be_read():
    assert all(parse_version(each.since) >= 0 for each in FEATURES)


def test_a_request_tells_its_feature_and_unknown_ones_have_none():
    assert feature_of(RequestCode.POP_MESSAGE) is BROKER_SHARES
    assert (feature_of(RequestCode.CLEAN_UNUSED_TOPIC), feature_of(9999)) == (None, None)


def test_the_rows_say_name_brokers_and_what_a_proxy_does():
    rows = {name: (brokers, proxy) for name, brokers, proxy in feature_rows([BROKER_SHARES, PINS])}

    assert rows[BROKER_SHARES.name][0] == "5.0.0 or newer"
    assert rows[PINS.name] == ("all", f"refused: {PINS.instead}")
