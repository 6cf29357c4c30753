import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtools.allocate import AllocateByConsistentHash, AllocatePinnedByIp, client_address
from rmqtools.errors import ConfigError
from tests.unit.policy.allocate.groups import CLASSIC_QUEUES, any_members, any_queues, shares_of

MEMBERS = ["10.0.0.1@1", "10.0.0.11@1", "10.0.1.1@1"]
addresses = st.ip_addresses()


def owners(strategy, members):
    return [member for member, queues in shares_of(strategy, members=members).items() if queues]


@pytest.mark.parametrize(
    ("client_id", "address"),
    [
        pytest.param("10.0.0.1@4711#815", "10.0.0.1", id="java"),
        pytest.param("4711-10.0.0.1@DEFAULT", "10.0.0.1", id="cpp"),
        pytest.param("10.0.0.1@reader-3", "10.0.0.1", id="spark"),
        pytest.param("fe80::1@1", "fe80::1", id="ipv6"),
        pytest.param("FE80:0:0:0:0:0:0:1@1", "fe80::1", id="ipv6-long-form"),
        pytest.param("[fe80::1%eth0]@1", "fe80::1%eth0", id="ipv6-in-brackets-with-scope"),
        pytest.param("4711-fe80::1@1", "fe80::1", id="ipv6-cpp"),
    ],
)
def test_the_address_is_the_text_before_the_last_at_without_the_process_id(client_id, address):
    assert client_address(client_id) == ipaddress.ip_address(address)


@pytest.mark.parametrize(
    "client_id",
    ["", "@", "10.0.0.1", "host@1", "10.0.0.1@a@b", "10.0.0@1", "10.0.0.01@1", "x-10.0.0.1@1",
     "1-2-10.0.0.1@1", "10.0.0.1 @1", "167772161@1", "١-10.0.0.1@1", "[10.0.0.1@1"],
)  # fmt: skip
def test_what_is_no_address_is_none(client_id):
    assert client_address(client_id) is None


@given(address=addresses, pid=st.integers(0, 2**31), instance=st.text().filter(lambda text: "@" not in text))
def test_any_address_is_read_back(address, pid, instance):
    assert client_address(f"{address}@{instance}") == address
    assert client_address(f"{pid}-{address}@{instance}") == address


@pytest.mark.parametrize(
    ("ips", "expected"),
    [
        pytest.param(["10.0.0.1"], MEMBERS[:1], id="1-is-not-11"),
        pytest.param(["10.0.0.11"], MEMBERS[1:2], id="11-is-not-1"),
        pytest.param(["10.0.0.0/24"], MEMBERS[:2], id="network"),
        pytest.param(["10.0.0.1", "10.0.1.0/30"], MEMBERS[::2], id="several"),
        pytest.param(["0.0.0.0/0"], MEMBERS, id="all"),
        pytest.param(["::/0"], [], id="ipv6-is-not-ipv4"),
    ],
)
def test_only_members_with_one_of_the_ips_own_queues(ips, expected):
    assert owners(AllocatePinnedByIp(ips, when_absent="nobody"), MEMBERS) == expected


@pytest.mark.parametrize("ip", ["2001:db8::1", "2001:0db8:0:0::1", "2001:db8::/64"])
def test_ipv6_is_compared_as_a_number(ip):
    members = ["2001:db8:0:0:0:0:0:1@1", "2001:db8:1::1@1", "::1@1"]

    assert owners(AllocatePinnedByIp([ip], when_absent="nobody"), members) == members[:1]


def test_members_without_an_address_are_not_pinned():
    members = ["10.0.0.1", "10.0.0.1@1", "host@1"]

    assert owners(AllocatePinnedByIp(["0.0.0.0/0"], when_absent="nobody"), members) == ["10.0.0.1@1"]


def test_the_inner_strategy_sees_pinned_members_only():
    inner = AllocateByConsistentHash()
    owned = shares_of(AllocatePinnedByIp(["10.0.0.0/28"], inner, when_absent="nobody"), members=MEMBERS)

    assert owned == shares_of(inner, members=MEMBERS[:2]) | {MEMBERS[2]: []}


@pytest.mark.parametrize(("when_absent", "count"), [("nobody", 0), ("everybody", len(CLASSIC_QUEUES))])
def test_without_a_pinned_member_nobody_or_everybody_owns_the_queues(when_absent, count):
    owned = shares_of(AllocatePinnedByIp(["10.9.9.9"], when_absent=when_absent), members=MEMBERS)

    assert sum(map(len, owned.values())) == count


@pytest.mark.parametrize("when_absent", ["nobody", "everybody"])
@given(queues=any_queues, members=any_members, data=st.data())
def test_a_pinned_member_that_is_there_leaves_nothing_to_the_others(queues, members, data, when_absent):
    ip = data.draw(st.sampled_from(sorted(members))).partition("@")[0]
    there = [member for member in sorted(members) if member.startswith(f"{ip}@")]
    owned = shares_of(AllocatePinnedByIp([ip], when_absent=when_absent), queues, members)

    assert sorted(queue for member in there for queue in owned[member]) == sorted(queues)
    assert all(owned[member] == [] for member in members - set(there))


def test_when_absent_has_no_default():
    with pytest.raises(TypeError, match="when_absent"):
        AllocatePinnedByIp(["10.0.0.1"])  # type: ignore[call-arg]  # the mistake


@pytest.mark.parametrize(
    ("ips", "when_absent", "text"),
    [
        ([], "nobody", "ips is empty"),
        (["10.0.0.1/24"], "nobody", "has host bits set"),
        (["10.0.0.300"], "nobody", "10.0.0.300"),
        (["host"], "nobody", "does not appear to be"),
        ("10.0.0.1", "nobody", "want several"),
        (["10.0.0.1"], "anybody", "want one of nobody, everybody"),
    ],
)
def test_what_cannot_be_pinned_is_refused_at_once(ips, when_absent, text):
    with pytest.raises(ConfigError, match=text):
        AllocatePinnedByIp(ips, when_absent=when_absent)
