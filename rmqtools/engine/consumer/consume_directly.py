"""Gives one message to its listener on an administrator's request; commits nothing.

Source of the rule: consumeMessageDirectly of ConsumeMessageConcurrentlyService and
ConsumeMessageOrderlyService (Java client). Ours: a listener that returns None has succeeded; a dead
letter goes to the listener of the topic it was sent to.
"""

from collections.abc import Mapping

from rmqtools.clock import Clock
from rmqtools.engine.consumer.listeners import ConsumeStatus, Listeners
from rmqtools.log import get_logger
from rmqtools.model.consume import ConsumeConcurrentlyStatus, ConsumeContext, ConsumeOrderlyStatus
from rmqtools.model.message import MessageExt
from rmqtools.model.running_info import CMResult, ConsumeMessageDirectlyResult

log = get_logger(__name__)

_RESULTS: Mapping[ConsumeStatus, CMResult] = {
    ConsumeConcurrentlyStatus.CONSUME_SUCCESS: CMResult.CR_SUCCESS,
    ConsumeConcurrentlyStatus.RECONSUME_LATER: CMResult.CR_LATER,
    ConsumeOrderlyStatus.SUCCESS: CMResult.CR_SUCCESS,
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: CMResult.CR_LATER,
    ConsumeOrderlyStatus.COMMIT: CMResult.CR_COMMIT,
    ConsumeOrderlyStatus.ROLLBACK: CMResult.CR_ROLLBACK,
}


async def consume_directly(
    listeners: Listeners, message: MessageExt, context: ConsumeContext, *, orderly: bool, clock: Clock
) -> ConsumeMessageDirectlyResult:
    """Call the listener of the message's topic, which must exist, and describe the outcome."""
    began, remark = clock.monotonic(), None
    try:
        result = _RESULTS[await listeners.ask([message], context)]
    except Exception as error:  # a user's callback: the requester gets the error
        log.warning("listener_failed", topic=message.topic, reason=repr(error), exc_info=error)
        result, remark = CMResult.CR_THROW_EXCEPTION, f"{type(error).__name__}: {error}"
    return ConsumeMessageDirectlyResult(
        order=orderly,
        auto_commit=context.auto_commit,
        consume_result=result,
        remark=remark,
        spent_time_mills=round((clock.monotonic() - began) * 1000),
    )
