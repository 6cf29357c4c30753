"""Makes spans and metrics of what clients report.

The context of a span goes into the properties of the messages sent, under the names of the propagator: W3C's
``traceparent`` by default, as in the OpenTelemetry Java agent. A listener's span of one message is a child of
the span that sent it; of several messages it has links to them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from rmqtools.clock import SYSTEM_CLOCK
from rmqtools.errors import RocketMQError, SendManyError, UnknownOutcomeError
from rmqtools.model.message import Message, MessageExt
from rmqtools.model.result import SendResult
from rmqtools.observer import ConsumerFigures, Identity
from rmqtools.otel import attributes as names
from rmqtools.otel.metrics import Metrics

_MAX_LINKS = 128  # OTEL_SPAN_LINK_COUNT_LIMIT's default; more would be dropped by the SDK


@dataclass(slots=True, eq=False)
class _Sending:
    messages: Sequence[Message]
    results: Sequence[SendResult] = ()

    def stored(self, results: Sequence[SendResult]) -> None:
        self.results = results


@dataclass(slots=True, eq=False)
class _Processing:
    status: str | None = field(default=None)

    def failed(self, status: str) -> None:
        self.status = status


class Telemetry:
    """The observer that records. See :class:`rmqtools.observer.Observer`."""

    def __init__(self, tracer: trace.Tracer, metrics: Metrics, propagator: TextMapPropagator) -> None:
        self._tracer = tracer
        self._metrics = metrics
        self._propagator = propagator

    @contextmanager
    def sending(
        self, messages: Sequence[Message], sender: Identity, *, in_transaction: bool = False
    ) -> Iterator[_Sending]:
        """Open a span ``send TOPIC`` around a call that sends, and record its metrics."""
        what = names.operation("send", [message.topic for message in messages])
        about = what | names.of_client(sender, consumes=False)
        if len(messages) == 1:
            about |= names.of_sent(messages[0], in_transaction=in_transaction)
        else:
            about[names.BATCH_COUNT] = len(messages)
        began = SYSTEM_CLOCK.monotonic()
        span = self._tracer.start_span(_span_name(what), kind=SpanKind.PRODUCER, attributes=about)
        sending = _Sending([])
        error: BaseException | None = None
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            sending.messages = [self._with_context(message) for message in messages]
            try:
                yield sending
                if len(sending.results) == 1:
                    span.set_attributes(names.of_stored(sending.results[0]))
            except BaseException as raised:
                error = raised
                _mark(span, error)
                raise
            finally:
                self._count_sent(what, len(messages), sending.results, error)
                self._metrics.operation.record(SYSTEM_CLOCK.monotonic() - began, what | _error_type(error))

    @contextmanager
    def processing(self, messages: Sequence[MessageExt], consumer: Identity) -> Iterator[_Processing]:
        """Open a span ``process TOPIC`` around the call of a listener, and record its metrics."""
        what = names.operation("process", [message.topic for message in messages])
        about = what | names.of_client(consumer, consumes=True)
        about |= names.of_received(messages[0]) if len(messages) == 1 else {names.BATCH_COUNT: len(messages)}
        sender = self._context_of(messages[0]) if len(messages) == 1 else None
        # the current context is that of the consumer's start, whose span may be current in it for ever
        parent = otel_context.Context() if sender is None else sender
        began = SYSTEM_CLOCK.monotonic()
        span = self._tracer.start_span(
            _span_name(what),
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes=about,
            links=self._links(messages) if sender is None else None,
        )
        processing = _Processing()
        kind: names.Attributes = {}
        token = otel_context.attach(trace.set_span_in_context(span, parent))
        try:
            yield processing
            if processing.status is not None:
                span.set_status(Status(StatusCode.ERROR, processing.status))
                span.set_attributes(kind := {names.ERROR_TYPE: processing.status})
        except BaseException as raised:
            _mark(span, raised)
            kind = _error_type(raised)
            raise
        finally:
            otel_context.detach(token)
            span.end()
            by_group = what | {names.CONSUMER_GROUP: consumer.group} | kind
            self._metrics.process.record(SYSTEM_CLOCK.monotonic() - began, by_group)
            self._metrics.consumed.add(len(messages), by_group)

    def received(self, messages: Sequence[MessageExt], consumer: Identity, *, seconds: float) -> None:
        """Record a span ``receive TOPIC`` for what a poll returns, with links to the messages."""
        what = names.operation("receive", [message.topic for message in messages])
        about = what | names.of_client(consumer, consumes=True) | {names.BATCH_COUNT: len(messages)}
        now_ns = SYSTEM_CLOCK.now_ms() * 1_000_000
        span = self._tracer.start_span(
            _span_name(what),
            kind=SpanKind.CLIENT,
            attributes=about,
            links=self._links(messages),
            start_time=now_ns - int(seconds * 1e9),
        )
        span.end(now_ns)
        by_group = what | {names.CONSUMER_GROUP: consumer.group}
        self._metrics.operation.record(seconds, by_group)
        self._metrics.consumed.add(len(messages), by_group)

    def consumer_state(self, consumer: Identity, figures: ConsumerFigures | None) -> None:
        """Keep the state for the gauges."""
        self._metrics.consumer_state(consumer, figures)

    def loop_delay(self, seconds: float) -> None:
        """Record it."""
        self._metrics.loop_delay.record(seconds)

    def _with_context(self, message: Message) -> Message:
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return replace(message, properties={**message.properties, **carrier}) if carrier else message

    def _context_of(self, message: MessageExt) -> otel_context.Context | None:
        """Return the context that the sender put into a message's properties; None: none that is valid."""
        found = self._propagator.extract(message.properties)
        return found if trace.get_current_span(found).get_span_context().is_valid else None

    def _links(self, messages: Sequence[MessageExt]) -> list[Link]:
        contexts = [self._context_of(message) for message in messages[:_MAX_LINKS]]
        return [Link(trace.get_current_span(found).get_span_context()) for found in contexts if found]

    def _count_sent(
        self,
        what: names.Attributes,
        count: int,
        results: Sequence[SendResult],
        error: BaseException | None,
    ) -> None:
        fates: Sequence[SendResult | BaseException | None] = results or [error] * count
        if isinstance(error, SendManyError):
            fates = error.results
        for outcome, number in Counter(map(_outcome, fates)).items():
            self._metrics.sent.add(number, what | {names.OUTCOME: outcome})
        stored = [each for each in fates if isinstance(each, SendResult)]
        retries = max((len(each.attempts) - 1 for each in stored), default=0)
        if retries > 0:
            self._metrics.retries.add(retries, what)


def _span_name(what: names.Attributes) -> str:
    return " ".join(str(what[key]) for key in (names.OPERATION_NAME, names.DESTINATION) if key in what)


def _mark(span: trace.Span, error: BaseException) -> None:
    span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, str(error)))
    span.set_attributes(_error_type(error))


def _error_type(error: BaseException | None) -> names.Attributes:
    return {} if error is None else {names.ERROR_TYPE: type(error).__name__}


def _outcome(fate: SendResult | BaseException | None) -> str:
    """Return the outcome of a message. A one-way send, without result or error, has an unknown outcome."""
    if isinstance(fate, SendResult):
        return "stored"
    return (
        "not stored"
        if isinstance(fate, RocketMQError) and not isinstance(fate, UnknownOutcomeError)
        else "unknown"
    )
