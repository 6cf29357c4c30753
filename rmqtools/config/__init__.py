"""Settings: one frozen dataclass per role, plain values only; defaults are the Java client's and name them.

Strategies, selectors and listeners are constructor arguments of the clients, never settings.
"""

from typing import TYPE_CHECKING

from rmqtools.lazy_names import lazy_names

if TYPE_CHECKING:
    from rmqtools.config.client import ClientConfig
    from rmqtools.config.consumer import ConsumerConfig, PullConsumerConfig, PushConsumerConfig
    from rmqtools.config.producer import ProducerConfig
    from rmqtools.config.simple_consumer import SimpleConsumerConfig
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "rmqtools.config.client": "ClientConfig",
            "rmqtools.config.consumer": "ConsumerConfig PullConsumerConfig PushConsumerConfig",
            "rmqtools.config.producer": "ProducerConfig",
            "rmqtools.config.simple_consumer": "SimpleConsumerConfig",
        },
    )

__all__ = [
    "ClientConfig",
    "ConsumerConfig",
    "ProducerConfig",
    "PullConsumerConfig",
    "PushConsumerConfig",
    "SimpleConsumerConfig",
]
