"""Spark on RocketMQ beside Spark's Kafka source and sink: ``python -m tools.measure.bench.spark_kafka``."""
