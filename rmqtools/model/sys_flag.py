"""Bit fields of the wire: of a message, of a pull.

Source of the rule: MessageSysFlag, PullSysFlag (Java client).
"""

from enum import IntFlag


class MessageSysFlag(IntFlag):
    """Bits of a message's ``sys_flag``; bits 2-3 are the transaction type, bits 8-10 the compression type."""

    TRANSACTION_NOT_TYPE = 0
    COMPRESSED_FLAG = 1
    MULTI_TAGS_FLAG = 2
    TRANSACTION_PREPARED_TYPE = 4
    TRANSACTION_COMMIT_TYPE = 8
    TRANSACTION_ROLLBACK_TYPE = 12
    BORNHOST_V6_FLAG = 16
    STOREHOSTADDRESS_V6_FLAG = 32
    NEED_UNWRAP_FLAG = 64
    INNER_BATCH_FLAG = 128
    COMPRESSION_LZ4_TYPE = 256
    COMPRESSION_ZSTD_TYPE = 512
    COMPRESSION_ZLIB_TYPE = 768
    COMPRESSION_TYPE_COMPARATOR = 1792


class PullSysFlag(IntFlag):
    """Bits of a pull request's ``sys_flag``."""

    FLAG_COMMIT_OFFSET = 1
    FLAG_SUSPEND = 2
    FLAG_SUBSCRIPTION = 4
    FLAG_CLASS_FILTER = 8
    FLAG_LITE_PULL_MESSAGE = 16


COMPRESSED_FLAG = int(MessageSysFlag.COMPRESSED_FLAG)  # plain ints where every message passes
BORNHOST_V6_FLAG = int(MessageSysFlag.BORNHOST_V6_FLAG)
STOREHOSTADDRESS_V6_FLAG = int(MessageSysFlag.STOREHOSTADDRESS_V6_FLAG)


def clear_compressed_flag(sys_flag: int) -> int:
    """Return the flag without the compressed bit; the type bits stay, as upstream."""
    return sys_flag & ~COMPRESSED_FLAG


def build_pull_sys_flag(
    *,
    commit_offset: bool = False,
    suspend: bool = False,
    subscription: bool = False,
    class_filter: bool = False,
    lite_pull: bool = False,
) -> int:
    """Return the ``sys_flag`` of a pull request.

    Args:
        commit_offset: the request also commits its ``commit_offset``.
        suspend: the broker may hold the request until a message arrives (long poll).
        subscription: the request contains its subscription; otherwise the broker needs a heartbeat first.
        class_filter: filter by a class on the broker (removed upstream; only its bit is left).
        lite_pull: the request comes from the lite pull consumer.
    """
    return commit_offset | suspend << 1 | subscription << 2 | class_filter << 3 | lite_pull << 4


def clear_commit_offset_flag(pull_sys_flag: int) -> int:
    """Return the pull flag without the commit bit: a slave accepts no commits."""
    return pull_sys_flag & ~1
