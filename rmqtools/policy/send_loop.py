"""Decides whether a send continues after an attempt.

Source of the rules: DefaultMQProducerImpl.sendDefaultImpl (Java client).
"""

from dataclasses import dataclass

from rmqtools.errors import RocketMQError
from rmqtools.model.queue import MessageQueue
from rmqtools.model.result import SendStatus
from rmqtools.policy.retry import may_send_again


@dataclass(slots=True)
class SendLoop:
    """The state of one send between its attempts.

    Attributes:
        attempts_left: how many attempts may still be made.
        retry_another_broker_when_not_store_ok: continue if a broker stored without flush or replica.
        last_broker_name: the broker that the next attempt avoids.
    """

    attempts_left: int
    retry_another_broker_when_not_store_ok: bool = False
    last_broker_name: str | None = None

    def stored(self, queue: MessageQueue, status: SendStatus) -> None:
        """Note that a broker has stored the message."""
        if status is SendStatus.SEND_OK or not self.retry_another_broker_when_not_store_ok:
            self.attempts_left = 0
        else:
            self._after(queue, goes_on=True)

    def failed(self, queue: MessageQueue, error: RocketMQError) -> None:
        """Note that an attempt failed."""
        self._after(queue, goes_on=may_send_again(error))

    def _after(self, queue: MessageQueue, *, goes_on: bool) -> None:
        self.last_broker_name = queue.broker_name
        self.attempts_left = self.attempts_left - 1 if goes_on else 0
