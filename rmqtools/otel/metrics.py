"""The instruments. Gauges show the last state that consumers have reported."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from rmqtools.observer import ConsumerFigures, Identity
from rmqtools.otel.attributes import CLIENT_ID, CONSUMER_GROUP, DESTINATION, SYSTEM, Attributes

_SECONDS: Final = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

_Read = Callable[[ConsumerFigures], Mapping[str, int]]
_GAUGES: Final[tuple[tuple[str, str, str, _Read], ...]] = (
    ("rmqtools.consumer.lag", "{message}", "Messages not consumed yet.", lambda now: now.lag),
    ("rmqtools.consumer.queues", "{queue}", "Queues held.", lambda now: now.queues),
    (
        "rmqtools.consumer.cached.messages",
        "{message}",
        "Messages fetched and not consumed yet.",
        lambda now: {"": now.cached_messages},
    ),
    (
        "rmqtools.consumer.cached.size",
        "By",
        "Bytes of the bodies of cached messages.",
        lambda now: {"": now.cached_bytes},
    ),
)
"""Name, unit, description and value by topic; "" for all topics together."""


class Metrics:
    """The instruments of one meter."""

    def __init__(self, meter: Meter) -> None:
        self._consumers: dict[Identity, ConsumerFigures] = {}
        self.sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Messages sent, by outcome."
        )
        self.consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Messages given to listeners and polls."
        )
        self.operation = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Duration of sends and polls.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.process = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "Duration of listener calls.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.retries = meter.create_counter(
            "rmqtools.send.retries", "{attempt}", "Attempts of a send after its first."
        )
        self.loop_delay = meter.create_histogram(
            "rmqtools.loop.delay",
            "s",
            "How late the event loop was, twice a second.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        for name, unit, about, read in _GAUGES:
            meter.create_observable_gauge(name, [self._reader(read)], unit, about)
        meter.create_observable_counter(
            "rmqtools.consumer.rebalances",
            [self._reader(lambda f: {"": f.rebalances})],
            "{rebalance}",
            "How often the queues held have changed.",
        )

    def consumer_state(self, consumer: Identity, figures: ConsumerFigures | None) -> None:
        """Keep a consumer's last state; None: forget it."""
        if figures is None:
            self._consumers.pop(consumer, None)
        else:
            self._consumers[consumer] = figures

    def _reader(self, read: _Read) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Return a callback for the collecting thread: one observation for each consumer and topic."""

        def observations(_: CallbackOptions) -> Iterable[Observation]:
            return [
                Observation(value, _attributes(consumer, topic))
                for consumer, figures in list(self._consumers.items())
                for topic, value in read(figures).items()
            ]

        return observations


def _attributes(consumer: Identity, topic: str) -> Attributes:
    found: Attributes = {
        SYSTEM: "rocketmq",
        CONSUMER_GROUP: consumer.group,
        CLIENT_ID: consumer.client_id,
    }
    return found | {DESTINATION: topic} if topic else found
