"""Sends a broker the decision about a half message.

Source of the rules: DefaultMQProducerImpl.endTransaction, checkTransactionState; EndTransactionProcessor.
Java sends it one-way. Here commits and rollbacks are answered, so that the caller learns whether the broker
accepted them. UNKNOWN stays one-way, because brokers never answer it. The request is never repeated: a broker
that gets two commits stores the message twice, and a broker that got none asks again.
"""

from dataclasses import dataclass, replace

from rmqtools.engine.connection.remoting import Remoting
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.model.transaction import LocalTransactionState
from rmqtools.protocol.headers.send import EndTransactionRequestHeader
from rmqtools.protocol.wire.command import RemotingCommand, request

log = get_logger(__name__)

_BITS = {
    LocalTransactionState.COMMIT_MESSAGE: MessageSysFlag.TRANSACTION_COMMIT_TYPE,
    LocalTransactionState.ROLLBACK_MESSAGE: MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
    LocalTransactionState.UNKNOWN: MessageSysFlag.TRANSACTION_NOT_TYPE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfPlace:
    """The current place of a half message on its broker; every check moves it to another place."""

    addr: str
    broker_name: str | None
    topic: str | None
    tran_state_table_offset: int
    commit_log_offset: int
    msg_id: str
    transaction_id: str | None
    from_transaction_check: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a local transaction or a check; ``error`` is the exception it raised."""

    state: LocalTransactionState
    error: str | None = None

    @property
    def is_final(self) -> bool:
        """True if it is a commit or a rollback."""
        return self.state is not LocalTransactionState.UNKNOWN


async def end_transaction(
    remoting: Remoting, group: str, place: HalfPlace, decision: Decision, *, timeout: float
) -> str | None:
    """Send the decision once; return why the broker may not have accepted it, or None."""
    command = _end_request(group, place, decision)
    try:
        if decision.is_final:
            await remoting.invoke_ok(place.addr, command, timeout=timeout)
        else:
            await remoting.invoke_oneway(place.addr, command, timeout=timeout)
    except RocketMQError as error:
        log.warning(
            "transaction_not_ended",
            msg_id=place.msg_id,
            state=decision.state.value,
            addr=place.addr,
            reason=str(error),
        )
        return str(error)
    return None


def _end_request(group: str, place: HalfPlace, decision: Decision) -> RemotingCommand:
    header = EndTransactionRequestHeader(
        topic=place.topic,
        producer_group=group,
        tran_state_table_offset=place.tran_state_table_offset,
        commit_log_offset=place.commit_log_offset,
        commit_or_rollback=_BITS[decision.state],
        from_transaction_check=place.from_transaction_check,
        msg_id=place.msg_id,
        transaction_id=place.transaction_id,
        bname=place.broker_name,
    )
    return replace(request(header, oneway=not decision.is_final), remark=decision.error)
