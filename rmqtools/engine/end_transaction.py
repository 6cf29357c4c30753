"""Telling a broker the decision about a half message.

Source of the rules: DefaultMQProducerImpl.endTransaction, checkTransactionState; EndTransactionProcessor.
Java writes the request and asks for no answer. Here commits and rollbacks are answered, so that the caller
learns whether the broker took them; UNKNOWN stays one-way, since brokers never answer it. The request is
never sent twice: a broker that gets two commits stores the message twice, and one that got none asks.
"""

from dataclasses import dataclass, replace

from rmqtools.engine.remoting import Remoting
from rmqtools.errors import RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.sys_flag import MessageSysFlag
from rmqtools.model.transaction import LocalTransactionState
from rmqtools.protocol.command import RemotingCommand, request
from rmqtools.protocol.headers import EndTransactionRequestHeader

log = get_logger(__name__)

_BITS = {
    LocalTransactionState.COMMIT_MESSAGE: MessageSysFlag.TRANSACTION_COMMIT_TYPE,
    LocalTransactionState.ROLLBACK_MESSAGE: MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
    LocalTransactionState.UNKNOWN: MessageSysFlag.TRANSACTION_NOT_TYPE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfPlace:
    """Where a broker holds a half message at the moment: every check writes it anew, to another place."""

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
    """What a local transaction or a check came to; ``error`` is what it raised."""

    state: LocalTransactionState
    error: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether it is a commit or a rollback."""
        return self.state is not LocalTransactionState.UNKNOWN


async def end_transaction(
    remoting: Remoting, group: str, place: HalfPlace, decision: Decision, *, timeout: float
) -> str | None:
    """Tell the broker once; why it may not have taken the decision, None if it has or need not answer."""
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
