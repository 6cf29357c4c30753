"""Telemetry that records in memory, on a fake cluster."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rmqtools.otel import instrument, uninstrument


class Recorded:
    """What was recorded: spans by name, metrics by name."""

    def __init__(self):
        self.exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self._reader])

    def start(self):
        instrument(tracer_provider=self.tracers, meter_provider=self.meters)

    def spans(self, name):
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def points(self, name):
        """The data points of a metric, as (attributes, point)."""
        data = self._reader.get_metrics_data()
        scopes = [scope for each in data.resource_metrics for scope in each.scope_metrics] if data else []
        found = [metric for scope in scopes for metric in scope.metrics if metric.name == name]
        return [
            (dict(point.attributes or {}), point) for metric in found for point in metric.data.data_points
        ]

    def value(self, name, **attributes):
        """The sum of a counter's or gauge's points that have these attributes (``.`` is ``__``)."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return sum(point.value for found, point in self.points(name) if wanted.items() <= found.items())


@pytest.fixture
def recorded():
    recorded = Recorded()
    recorded.start()
    yield recorded
    uninstrument()
    recorded.tracers.shutdown()
    recorded.meters.shutdown()
