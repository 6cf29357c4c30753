"""Switches telemetry on and off."""

from opentelemetry import metrics, propagate, trace
from opentelemetry.propagators.textmap import TextMapPropagator

from rmqtools.observer import observe
from rmqtools.otel.metrics import Metrics
from rmqtools.otel.telemetry import Telemetry

_NAME = "rmqtools"


def instrument(
    *,
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
    propagator: TextMapPropagator | None = None,
) -> None:
    """Record spans and metrics of all clients that are made from now on.

    Args:
        tracer_provider: None: the global one.
        meter_provider: None: the global one.
        propagator: writes and reads the context in message properties; None: the global one, by default
            W3C (``traceparent``, ``tracestate``, ``baggage``) as the OpenTelemetry Java agent does.
    """
    tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
    meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
    observe(Telemetry(tracer, Metrics(meter), propagator or propagate.get_global_textmap()))


def uninstrument() -> None:
    """Clients made from now on record nothing. Those that exist go on."""
    observe(None)
