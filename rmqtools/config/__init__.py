"""Settings: one frozen dataclass per role, plain values only; defaults are the Java client's and name them.

Strategies, selectors and listeners are constructor arguments of the clients, never settings.
"""

from rmqtools.config.client import ClientConfig
from rmqtools.config.consumer import ConsumerConfig, PullConsumerConfig, PushConsumerConfig
from rmqtools.config.producer import ProducerConfig
from rmqtools.config.simple_consumer import SimpleConsumerConfig

__all__ = [
    "ClientConfig",
    "ConsumerConfig",
    "ProducerConfig",
    "PullConsumerConfig",
    "PushConsumerConfig",
    "SimpleConsumerConfig",
]
