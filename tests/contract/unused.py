"""What of Java's constants and flag helpers only the vectors ask for: nothing of the package needs it."""

from enum import IntFlag

MIX_ALL = {
    "SCHEDULE_CONSUMER_GROUP": "SCHEDULE_CONSUMER",
    "FILTERSRV_CONSUMER_GROUP": "FILTERSRV_CONSUMER",
    "MONITOR_CONSUMER_GROUP": "__MONITOR_CONSUMER",
    "CLIENT_INNER_PRODUCER_GROUP": "CLIENT_INNER_PRODUCER",
    "SELF_TEST_PRODUCER_GROUP": "SELF_TEST_P_GROUP",
    "SELF_TEST_CONSUMER_GROUP": "SELF_TEST_C_GROUP",
    "ONS_HTTP_PROXY_GROUP": "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_OWNER_GROUP": "CID_ONSAPI_OWNER",
    "CID_ONSAPI_PERMISSION_GROUP": "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_PULL_GROUP": "CID_ONSAPI_PULL",
    "LOGICAL_QUEUE_MOCK_BROKER_NAME_NOT_EXIST": "__syslo__none__",
    "WS_DOMAIN_SUBGROUP": "nsaddr",
}

_TRANSACTION_BITS = 12


class TopicSysFlag(IntFlag):
    """Bits of a topic's ``topic_sys_flag``."""

    FLAG_UNIT = 1
    FLAG_UNIT_SUB = 2


def transaction_type(sys_flag: int) -> int:
    """The two transaction bits: none 0, prepared 4, commit 8, rollback 12."""
    return sys_flag & _TRANSACTION_BITS


def reset_transaction_type(sys_flag: int, transaction: int) -> int:
    """The same flag with other transaction bits."""
    return (sys_flag & ~_TRANSACTION_BITS) | transaction


def clear_suspend_flag(pull_sys_flag: int) -> int:
    """The same pull flag without the long poll bit."""
    return pull_sys_flag & ~2
