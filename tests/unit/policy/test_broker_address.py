import pytest

from rmqtools.config import ClientConfig
from rmqtools.errors import ConfigError
from rmqtools.policy.broker_address import FoundBroker, describe_mapping, find_in_subscribe, map_address

TABLE = {"a": {0: "master:1", 1: "slave:1"}, "b": {0: "master:2", 2: "slave:2"}}


@pytest.mark.parametrize(
    ("name", "broker_id", "found"),
    [
        pytest.param("a", 0, FoundBroker("master:1", False), id="the-master"),
        pytest.param("a", 1, FoundBroker("slave:1", True), id="the-slave-itself-without-a-second-one"),
        pytest.param("b", 1, FoundBroker("slave:2", True), id="the-next-slave"),
        pytest.param("a", 5, None, id="no-such-slave"),
        pytest.param("c", 0, None, id="no-such-broker"),
    ],
)
def test_a_pull_goes_to_the_broker_that_was_named_or_to_the_next_slave(name, broker_id, found):
    assert find_in_subscribe(TABLE, name, broker_id, only_this_broker=True) == found


RULES = {
    "10.0.0.5:10911": "127.0.0.1:1",
    "10.0.0.*": "127.0.0.1:2",
    "10.*": "127.0.0.1:*",
    "*:10911": "127.0.0.1:4",
    "[FD00::5]:10921": "[::1]:5",
    "fd00::*": "[::1]:*",
    "Broker-0.brokers.svc:10921": "localhost:6",
}


@pytest.mark.parametrize(
    ("addr", "reached"),
    [
        pytest.param("10.0.0.5:10911", "127.0.0.1:1", id="exact-before-prefix-and-port"),
        pytest.param("10.0.0.6:10911", "127.0.0.1:2", id="the-longest-prefix-before-the-port"),
        pytest.param("100.0.0.6:10921", "100.0.0.6:10921", id="a-prefix-ends-where-it-says"),
        pytest.param("10.1.0.6:10921", "127.0.0.1:10921", id="a-star-as-port-keeps-it"),
        pytest.param("192.168.7.7:10911", "127.0.0.1:4", id="any-host-of-a-port"),
        pytest.param("192.168.7.7:10912", "192.168.7.7:10912", id="no-rule"),
        pytest.param("[fd00::5]:10921", "[::1]:5", id="ipv6-without-regard-to-case"),
        pytest.param("fd00::5:10921", "[::1]:5", id="ipv6-without-brackets"),
        pytest.param("[fd00::6]:10921", "[::1]:10921", id="ipv6-prefix"),
        pytest.param("broker-0.brokers.svc:10921", "localhost:6", id="host-name"),
    ],
)
def test_an_address_is_mapped_by_its_most_exact_rule(addr, reached):
    assert map_address(addr, RULES) == reached


def test_a_star_alone_comes_after_every_other_rule():
    rules = {"*": "127.0.0.1:1", "*:10911": "127.0.0.1:2"}

    assert [map_address(addr, rules) for addr in ("h:10911", "h:10912")] == ["127.0.0.1:2", "127.0.0.1:1"]


def test_a_function_maps_every_address():
    assert (
        map_address("10.0.0.5:10911", lambda addr: addr.replace("10.0.0.5", "localhost")) == "localhost:10911"
    )


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda addr: None, "returned None for '10.0.0.5:1': want host:port"),
        (lambda addr: {}[addr], "raised for '10.0.0.5:1': KeyError"),
    ],
)
def test_a_function_that_gives_no_address_is_an_error_of_the_configuration(function, words):
    with pytest.raises(ConfigError, match=words):
        map_address("10.0.0.5:1", function)


@pytest.mark.parametrize(
    "rules",
    [
        {"10.0.*.5:10911": "127.0.0.1:1"},
        {"10.0.0.5": "127.0.0.1:1"},
        {"*:x": "127.0.0.1:1"},
        {"10.*": "127.0.0.1"},
        {"10.*": ""},
    ],
)
def test_rules_that_can_match_nothing_or_lead_nowhere_are_refused(rules):
    with pytest.raises(ConfigError, match="broker_address_map: '"):
        ClientConfig(name_server="127.0.0.1:9876", broker_address_map=rules)


@pytest.mark.parametrize("rules", [{"10.0.0.5:10911": 20911}, {10911: "127.0.0.1:20911"}])
def test_a_rule_that_is_no_text_is_refused(rules):
    with pytest.raises(ConfigError, match=r"broker_address_map: .* want two texts"):
        ClientConfig(name_server="127.0.0.1:9876", broker_address_map=rules)


def test_what_is_neither_a_mapping_nor_a_function_is_refused():
    with pytest.raises(ConfigError, match="want a mapping or a function"):
        ClientConfig(name_server="127.0.0.1:9876", broker_address_map=5)  # type: ignore[arg-type]  # the mistake


def test_an_unmapped_address_is_explained_with_the_option():
    assert "set broker_address_map, e.g. {'10.0.0.5:10911'" in describe_mapping(
        "10.0.0.5:10911", "10.0.0.5:10911"
    )
