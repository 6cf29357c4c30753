"""The names of ``rocketmq.exceptions``. ``__cause__`` is the error of :mod:`rmqtools.errors` with details.

RocketMQException                      also rmqtools.errors.RocketMQError
├── NullPointerException               None where text or bytes are wanted
├── MallocFailed                       never raised
├── ProducerException                  a setting after the start
│   ├── ProducerStartFailed
│   ├── ProducerSendSyncFailed         send_sync, send_message_in_transaction
│   ├── ProducerSendOnewayFailed
│   ├── ProducerSendOrderlyFailed
│   └── ProducerSendAsyncFailed        never raised
└── ConsumerException                  a setting after the start
    └── PushConsumerStartFailed
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rmqtools.errors import RocketMQError


class RocketMQException(RocketMQError):
    """The root of the native client's exceptions."""


class NullPointerException(RocketMQException):
    """None was given where text or bytes are wanted."""


class MallocFailed(RocketMQException):
    """Never raised; for programs that catch it."""


class ProducerException(RocketMQException):
    """An error of a producer."""


class ProducerStartFailed(ProducerException):
    """A producer cannot start: a setting is not valid, or it was shut down."""


class ProducerSendSyncFailed(ProducerException):
    """A message was not stored, or its outcome is unknown, as ``__cause__`` shows."""


class ProducerSendOnewayFailed(ProducerException):
    """A message was not written to any broker."""


class ProducerSendOrderlyFailed(ProducerException):
    """A message was not stored in order, or its outcome is unknown, as ``__cause__`` shows."""


class ProducerSendAsyncFailed(ProducerException):
    """Never raised, because no method sends asynchronously; for programs that catch it."""

    def __init__(self, msg: str, error: int, file: str, line: int, type: int) -> None:
        super().__init__(msg)
        self.error = error
        self.file = file
        self.line = line
        self.type = type


class ConsumerException(RocketMQException):
    """An error of a consumer."""


class PushConsumerStartFailed(ConsumerException):
    """A consumer cannot start: nothing is subscribed, a setting is not valid, or no name server answers."""


@contextmanager
def raised_as(kind: type[RocketMQException]) -> Iterator[None]:
    """Raise each error of rmqtools in the block as this class, with the original as ``__cause__``."""
    try:
        yield
    except RocketMQException:
        raise
    except RocketMQError as error:
        raise kind(str(error)) from error
