"""Delays until a popped message is delivered again after a failure.

Source of the rules: ConsumeMessagePopConcurrentlyService.changePopInvisibleTime, checkNeedAckOrDelay,
DefaultMQPushConsumerImpl.getPopDelayLevel (Java client).
"""

_DELAYS = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)  # seconds


def pop_delay(reconsume_times: int, delay_level: int = 0) -> float:
    """Seconds until a failed message is delivered again; level 0: longer with every attempt."""
    level = delay_level or reconsume_times
    return float(_DELAYS[min(level, len(_DELAYS) - 1)])


def exhausted_delay(age: float) -> float | None:
    """Return the delay of a message without attempts left, ``age`` seconds old; None: acknowledge it.

    It is still delivered, less and less often, until it is twice as old as the longest delay.
    """
    if age > _DELAYS[-1] * 2:
        return None
    passed = sum(age >= delay for delay in _DELAYS)
    return pop_delay(0, passed) if passed else float(_DELAYS[0])
