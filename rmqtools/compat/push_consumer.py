"""The push consumer of ``rocketmq.client``."""

from collections.abc import Callable

import rmqtools
from rmqtools.allocate import AllocateMessageQueueStrategy
from rmqtools.compat.exceptions import ConsumerException, PushConsumerStartFailed, raised_as
from rmqtools.compat.lifecycle import Startable
from rmqtools.compat.message import ReceivedMessage, Text, to_text
from rmqtools.compat.status import ConsumeStatus, MessageModel, TraceModel, is_trace_open
from rmqtools.log import get_logger

Callback = Callable[[ReceivedMessage], object]

log = get_logger(__name__)

_MODELS = {
    MessageModel.BROADCASTING: rmqtools.MessageModel.BROADCASTING,
    MessageModel.CLUSTERING: rmqtools.MessageModel.CLUSTERING,
}


class PushConsumer(Startable[rmqtools.PushConsumer]):
    """A member of a consumer group that calls callbacks with one message at a time.

    Args:
        group_id: name of the consumer group.
        orderly: whether messages of a queue are consumed one after the other.
        message_model: whether members share the messages or each gets all.
        allocate_strategy: how members share the queues, the same at all members; None: AllocateAveragely,
            as native members do. The native client has no such parameter.
    """

    _error = ConsumerException

    def __init__(
        self,
        group_id: Text,
        orderly: bool = False,
        message_model: MessageModel = MessageModel.CLUSTERING,
        *,
        allocate_strategy: AllocateMessageQueueStrategy | None = None,
    ) -> None:
        super().__init__(group_id)
        self._set("orderly", bool(orderly))
        self.set_message_model(message_model)
        self._strategy = allocate_strategy
        self._subscriptions: dict[str, tuple[Callback, str]] = {}

    def set_group(self, group_id: Text) -> None:
        """Set the name of the consumer group."""
        self._set_group(group_id)

    def set_message_model(self, model: MessageModel) -> None:
        """Set whether members share the messages (CLUSTERING) or each gets all (BROADCASTING)."""
        self._set("message_model", _MODELS[MessageModel(model)])

    def set_thread_count(self, thread_count: int) -> None:
        """Set how many callbacks run at the same time; default 20."""
        self._set("consume_threads", thread_count)

    def set_message_batch_max_size(self, max_size: int) -> None:
        """Set how many messages a thread takes at once; the callback still gets one at a time."""
        self._set("consume_message_batch_max_size", max_size)

    def set_message_trace(self, message_trace: bool | TraceModel) -> None:
        """Set whether records are sent before and after each callback: True or TraceModel.OPEN."""
        self._set("enable_trace", is_trace_open(message_trace))

    def subscribe(self, topic: Text, callback: Callback, expression: Text = "*") -> None:
        """Call ``callback(message)`` for each message of a topic; before or after the start.

        Args:
            topic: one topic; each has its own callback.
            callback: returns a ConsumeStatus. One that raises, or returns anything else (None too), has the
                message delivered again, and the error is logged.
            expression: the tags wanted, ``"a || b"``; ``*`` is everything.

        Raises:
            TypeError: the callback cannot be called.
            ConsumerException: after the start: a name or an expression that cannot be used; or the consumer
                was shut down.
        """
        if not callable(callback):
            raise TypeError(
                f"callback {callback!r} of topic {topic!r} cannot be called: want callback(message)"
            )
        name, tags = to_text("topic", topic), to_text("expression", expression)
        if self._engine is not None:
            with raised_as(ConsumerException):
                self._engine.subscribe(name, self._listener(callback), tags=tags)
        elif not self._is_new:
            raise ConsumerException(f"topic {name!r}: the consumer was shut down: make a new one")
        self._subscriptions[name] = (callback, tags)

    def start(self) -> None:
        """Join the group and consume.

        Raises:
            PushConsumerStartFailed: nothing is subscribed, a setting is not valid, no name server answers, or
                the consumer was shut down.
        """
        if self._engine is not None:
            return
        if not self._is_new:
            raise PushConsumerStartFailed("the consumer was shut down: make a new one")
        if not self._subscriptions:
            raise PushConsumerStartFailed(
                "nothing is subscribed: call subscribe(topic, callback) before start()"
            )
        with raised_as(PushConsumerStartFailed):
            config = rmqtools.PushConsumerConfig(**self._known_settings())
            engine = rmqtools.PushConsumer(config, strategy=self._strategy)
            for topic, (callback, tags) in self._subscriptions.items():
                engine.subscribe(topic, self._listener(callback), tags=tags)
            self._run(engine)

    def _listener(self, callback: Callback) -> "rmqtools.MessageListener":
        return _listen_in_order(callback) if self._settings["orderly"] else _listen(callback)


def _listen(callback: Callback) -> "rmqtools.MessageListener":
    """Our listener that calls a native callback until a message fails; those before it are consumed."""

    def listen(
        messages: list[rmqtools.MessageExt], context: rmqtools.ConsumeContext
    ) -> rmqtools.ConsumeConcurrentlyStatus:
        for index, message in enumerate(messages):
            if not _is_consumed(callback, message):
                context.ack_index = index - 1
                break
        if context.ack_index < 0:
            return rmqtools.ConsumeConcurrentlyStatus.RECONSUME_LATER
        return rmqtools.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    return listen


def _listen_in_order(callback: Callback) -> "rmqtools.MessageListener":
    """Return the same for messages in order, of which a batch fails as a whole."""

    def listen(
        messages: list[rmqtools.MessageExt], context: rmqtools.ConsumeContext
    ) -> rmqtools.ConsumeOrderlyStatus:
        if all(_is_consumed(callback, message) for message in messages):
            return rmqtools.ConsumeOrderlyStatus.SUCCESS
        return rmqtools.ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT

    return listen


def _is_consumed(callback: Callback, message: rmqtools.MessageExt) -> bool:
    """Return whether a callback answers CONSUME_SUCCESS; every error of it is logged, SystemExit too."""
    try:
        return ConsumeStatus(callback(ReceivedMessage(message))) is ConsumeStatus.CONSUME_SUCCESS  # type: ignore[arg-type]
    except BaseException as error:  # a user's callback: the message is delivered again
        log.error(
            "consume_callback_failed",
            topic=message.topic,
            msg_id=message.msg_id,
            reason=repr(error),
            exc_info=error,
        )
        return False
