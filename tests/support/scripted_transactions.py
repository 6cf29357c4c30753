"""A fake cluster with scripted answers to half messages and decisions, and check-backs on request."""

import asyncio
from collections.abc import Callable

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.sys_flag import COMPRESSED_FLAG
from rmqtools.protocol.headers.send import CheckTransactionStateRequestHeader
from rmqtools.protocol.messages.stored import SYSFLAG_POSITION
from rmqtools.protocol.wire.command import RemotingCommand, encode_command, request, response
from rmqtools.testing import encode_stored, stored_message
from tests.support.scripted_cluster import Answer, ScriptedCluster, stored


async def until(true: Callable[[], object]) -> None:
    """Wait for a condition by polling."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)


class TransactionBroker(ScriptedCluster):
    """``sends`` answers half messages, ``ends`` decisions; its one broker is ``a``."""

    def __init__(self, *, sends: Answer = stored, ends: Answer | None = None) -> None:
        super().__init__({"a": sends}, queues=1)
        agreed = response(ResponseCode.SUCCESS, 0)
        self.fault(code=RequestCode.END_TRANSACTION, times=None, answer=ends or agreed)

    async def arrived(self, code: RequestCode, count: int = 1) -> list[RemotingCommand]:
        """Wait until so many requests of a code are here."""
        await until(lambda: len(self.requests(code)) >= count)
        return self.requests(code)

    async def check(self, msg_id: str, *, place: int, group: str = "g", is_corrupt: bool = False) -> None:
        """Send a check-back for a message at ``place``; a corrupt one has a false compression flag."""
        properties = {"UNIQ_KEY": msg_id, "PGROUP": group, "TRAN_MSG": "true"}
        header = CheckTransactionStateRequestHeader(
            topic="RMQ_SYS_TRANS_HALF_TOPIC",
            tran_state_table_offset=place,
            commit_log_offset=place * 100,
            msg_id=msg_id,
            transaction_id=msg_id,
        )
        half = stored_message("T", body=b"half", properties=properties, sys_flag=4)
        stored = bytearray(encode_stored([half]))
        stored[SYSFLAG_POSITION + 3] |= is_corrupt * COMPRESSED_FLAG
        self.say("a", encode_command(request(header, bytes(stored), oneway=True)))
