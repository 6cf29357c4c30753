import pytest

from rmqtools.model.sys_flag import (
    MessageSysFlag,
    PullSysFlag,
    build_pull_sys_flag,
    clear_commit_offset_flag,
    clear_compressed_flag,
)

EVERY_BIT = 0x7FFF_FFFF


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"commit_offset": True}, PullSysFlag.FLAG_COMMIT_OFFSET),
        ({"suspend": True}, PullSysFlag.FLAG_SUSPEND),
        ({"subscription": True}, PullSysFlag.FLAG_SUBSCRIPTION),
        ({"class_filter": True}, PullSysFlag.FLAG_CLASS_FILTER),
        ({"lite_pull": True}, PullSysFlag.FLAG_LITE_PULL_MESSAGE),
        ({"suspend": True, "subscription": True}, PullSysFlag.FLAG_SUSPEND | PullSysFlag.FLAG_SUBSCRIPTION),
        ({}, 0),
    ],
)
def test_each_wish_of_a_pull_is_its_own_bit(given, flag):
    assert build_pull_sys_flag(**given) == flag


def test_clearing_a_bit_leaves_all_others():
    assert clear_commit_offset_flag(EVERY_BIT) == EVERY_BIT - PullSysFlag.FLAG_COMMIT_OFFSET
    assert clear_compressed_flag(EVERY_BIT) == EVERY_BIT - MessageSysFlag.COMPRESSED_FLAG
