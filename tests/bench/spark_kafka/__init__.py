"""Spark on RocketMQ beside Spark's own Kafka source and sink: ``python -m tests.bench.spark_kafka``."""
