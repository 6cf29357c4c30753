"""A broker for transactions that is its own name server: answers as a test says, asks back when told to."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.model.message import MessageExt
from rmqtools.protocol.command import RemotingCommand, encode_command, request, response
from rmqtools.protocol.headers import CheckTransactionStateRequestHeader
from rmqtools.protocol.messages import encode_message
from tests.support.scripted_cluster import stored
from tests.support.scripted_peer import ScriptedPeer

Answer = Callable[[RemotingCommand], RemotingCommand | None]


async def until(true: Callable[[], object]) -> None:
    """Wait for what tells nobody that it has come true."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)


class TransactionBroker:
    """``sends`` answers half messages, ``ends`` decisions; ``requests`` of a code are what has arrived."""

    def __init__(self, *, sends: Answer = stored, ends: Answer | None = None) -> None:
        self.peer = ScriptedPeer(self._answer)
        self._sends = sends
        self._ends = ends or (lambda command: response(ResponseCode.SUCCESS, 0))

    def requests(self, code: RequestCode) -> list[RemotingCommand]:
        return [command for command in self.peer.requests if command.code == code]

    async def arrived(self, code: RequestCode, count: int = 1) -> list[RemotingCommand]:
        """Wait until so many requests of a code are here."""
        await until(lambda: len(self.requests(code)) >= count)
        return self.requests(code)

    async def check(self, msg_id: str, *, place: int, group: str = "g") -> None:
        """Ask what became of a message that now stands at ``place``."""
        properties = {"UNIQ_KEY": msg_id, "PGROUP": group, "TRAN_MSG": "true"}
        header = CheckTransactionStateRequestHeader(
            topic="RMQ_SYS_TRANS_HALF_TOPIC",
            tran_state_table_offset=place,
            commit_log_offset=place * 100,
            msg_id=msg_id,
            transaction_id=msg_id,
        )
        body = encode_message(half_message(properties))
        await self.peer.say(encode_command(request(header, body, oneway=True)))

    def _answer(self, command: RemotingCommand) -> RemotingCommand | None:
        if command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return response(0, 0, body=json.dumps(self._route()).encode())
        if command.code == RequestCode.SEND_MESSAGE_V2:
            return self._sends(command)
        if command.code == RequestCode.END_TRANSACTION:
            return None if command.is_oneway else self._ends(command)
        return response(ResponseCode.SUCCESS, 0)

    def _route(self) -> Mapping[str, Any]:
        queues = {"brokerName": "a", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicSysFlag": 0}
        broker = {"brokerName": "a", "cluster": "C", "brokerAddrs": {"0": self.peer.addr}}
        return {"brokerDatas": [broker], "queueDatas": [queues]}


def half_message(properties: Mapping[str, str]) -> MessageExt:
    return MessageExt(
        topic="T",
        queue_id=0,
        queue_offset=0,
        commit_log_offset=0,
        body=b"half",
        properties=properties,
        flag=0,
        sys_flag=4,
        born_timestamp_ms=1,
        born_host="127.0.0.1:1",
        store_timestamp_ms=1,
        store_host="127.0.0.1:2",
    )
