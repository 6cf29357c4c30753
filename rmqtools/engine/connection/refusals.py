"""Brokers that refuse a client's requests for lack of permission. Nothing else of the client would show it.

By all other signs a consumer whose heartbeats or pulls are refused is healthy. It just gets nothing.
"""

from collections.abc import Callable, Collection

from rmqtools.errors import BrokerError, RocketMQError
from rmqtools.log import get_logger
from rmqtools.model.codes import ResponseCode

log = get_logger(__name__)

ErrorListener = Callable[[RocketMQError], object]

HEARTBEAT, FETCH = "heartbeat", "fetch"  # what is refused


class Refusals:
    """The refusals in force. Each is reported once, and again after an accepted request."""

    def __init__(self) -> None:
        self._in_force: dict[tuple[str, str], BrokerError] = {}
        self._untold: list[BrokerError] = []
        self._listeners: list[ErrorListener] = []

    def listen(self, listener: ErrorListener) -> None:
        """Call ``listener(error)`` for each new refusal; its errors are logged."""
        self._listeners.append(listener)

    def note(self, what: str, broker_name: str, error: RocketMQError) -> None:
        """Note an error of a broker; only a lack of permission counts."""
        if not isinstance(error, BrokerError) or error.code != ResponseCode.NO_PERMISSION:
            return
        is_new = (what, broker_name) not in self._in_force
        self._in_force[what, broker_name] = error
        if is_new:
            self._untold.append(error)
            for listener in self._listeners:
                report_error(listener, error)

    def accepted(self, what: str, broker_name: str) -> None:
        """Note that a broker has accepted such a request."""
        if self._in_force:
            self._in_force.pop((what, broker_name), None)

    def take(self) -> BrokerError | None:
        """Return the oldest refusal that was not taken yet, once; None: there is none."""
        return self._untold.pop(0) if self._untold else None

    def of_all(self, what: str, broker_names: Collection[str]) -> BrokerError | None:
        """Return a refusal, if each of these brokers refuses; None: one does not, or there are none."""
        found = [self._in_force.get((what, name)) for name in broker_names]
        return found[0] if found and all(found) else None


def report_error(listener: ErrorListener, error: RocketMQError) -> None:
    """Call a user's error listener; log an error."""
    try:
        listener(error)
    except Exception as failure:  # a user's callback: the consumer continues
        log.error("error_listener_failed", reason=repr(failure), exc_info=failure)
