"""``rmqtools exporter``: the state of a cluster for Prometheus."""
