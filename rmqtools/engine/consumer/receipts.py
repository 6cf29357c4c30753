"""The receipts of received messages: which still count.

A receipt is the text POP_CK of a message. It ends with the invisible time, by the clock of its broker, and
when another one replaces it. Brokers 5.5.0 answer SUCCESS to an acknowledgement with a receipt that has ended
or was replaced, and do nothing; so such receipts are refused here.
Source of the rule: ReceiptHandle.isExpired, ConsumerProcessor.validateReceiptHandle (proxy). Ours: the proxy
compares its own clock with the broker's, and does not know receipts that were replaced.
"""

from collections.abc import Sequence

from rmqtools.clock import Clock
from rmqtools.engine.consumer.settle_requests import PoppedMessage
from rmqtools.errors import ProtocolError, ReceiptError
from rmqtools.model.message import MessageExt
from rmqtools.protocol.headers.pop_extra_info import PopExtraInfo

_FIRST_SWEEP = 1000  # replaced receipts
_LATEST_ANSWER_MS = 10_000  # an answer that seems to have taken longer comes from a clock that was set back


class Receipts:
    """The receipts that one consumer got and replaced.

    The clock of a broker is learned from its answers, too slow by the time that the answer took. It is
    compared with the monotonic clock: setting the clock of this machine ends no receipt. Until a broker has
    answered, this machine's wall clock counts: for receipts that another process received.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms: dict[str, int] = {}  # a broker's clock, compared with the monotonic one
        self._replaced: dict[str, int] = {}  # receipt: when it ends, in milliseconds of the monotonic clock
        self._sweep_at = _FIRST_SWEEP

    def received(self, info: PopExtraInfo) -> None:
        """Note the time of a pop that was answered just now."""
        ahead = info.pop_time - self._monotonic_ms()
        known = self._ahead_ms.get(info.broker_name, ahead)
        is_set_back = known - ahead > _LATEST_ANSWER_MS  # or another machine has become master
        self._ahead_ms[info.broker_name] = ahead if is_set_back else max(ahead, known)

    def is_valid(self, message: MessageExt) -> bool:
        """Return whether the receipt of a message still counts."""
        try:
            self.check(message)
        except ReceiptError:
            return False
        return True

    def check(self, message: MessageExt) -> PoppedMessage:
        """Return the data of a message that can be acknowledged.

        Raises:
            ReceiptError: it has no receipt, or its receipt has ended or was replaced.
        """
        try:
            popped = PoppedMessage.of(message)
        except (KeyError, ProtocolError) as error:
            raise ReceiptError(
                f"message {message.msg_id} of {message.topic!r} has no receipt ({error}): only messages from "
                "SimpleConsumer.receive can be acknowledged"
            ) from None
        if popped.extra_info in self._replaced:
            raise ReceiptError(
                f"receipt of message {message.msg_id} of {message.topic!r} was replaced: use the message "
                "that change_invisible_duration returned; if it returned none, the message comes again"
            )
        late_ms = self._monotonic_ms() - self._end_ms(popped.info)
        if late_ms >= 0:
            raise ReceiptError(
                f"receipt of message {message.msg_id} of {message.topic!r} ended {late_ms / 1000:.3f} s ago: "
                "the message comes again; receive with a longer invisible_duration, or call "
                "change_invisible_duration in time"
            )
        return popped

    def replace(self, popped: PoppedMessage) -> None:
        """Refuse a receipt from now on: it has a successor."""
        self._replaced[popped.extra_info] = self._end_ms(popped.info)
        if len(self._replaced) >= self._sweep_at:
            now = self._monotonic_ms()
            self._replaced = {text: end for text, end in self._replaced.items() if end > now}
            self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._replaced))

    def _end_ms(self, info: PopExtraInfo) -> int:
        """Return when a receipt ends, by the monotonic clock."""
        ahead = self._ahead_ms.get(info.broker_name)
        if ahead is None:
            ahead = self._clock.now_ms() - self._monotonic_ms()
        return info.pop_time + info.invisible_time - ahead

    def _monotonic_ms(self) -> int:
        return round(self._clock.monotonic() * 1000)


def received_messages(given: object) -> list[MessageExt]:
    """Return one message, or several, as a list.

    Raises:
        ReceiptError: something else is given, such as a message id.
    """
    messages = [given] if isinstance(given, MessageExt) else given
    if not isinstance(messages, Sequence) or not all(isinstance(one, MessageExt) for one in messages):
        raise ReceiptError(f"a {type(given).__name__} is no message: want what receive has returned")
    return list(messages)
