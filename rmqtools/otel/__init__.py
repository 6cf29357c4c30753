"""OpenTelemetry: spans and metrics of producers and consumers.

    from rmqtools.otel import instrument

    instrument()  # before clients are made

Off until :func:`instrument` is called. ``docs/observe.md`` lists the spans, attributes and metrics.
"""

try:
    import opentelemetry.trace  # noqa: F401 - only looked for
except ImportError as error:
    raise ImportError(
        f"rmqtools.otel needs opentelemetry-api: pip install 'rmqtools[otel]' ({error})", name=error.name
    ) from error

from rmqtools.otel.instrument import instrument, uninstrument

__all__ = ["instrument", "uninstrument"]
