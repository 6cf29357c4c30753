"""The API of rocketmq-client-python 2.0.0 on our engine: a program moves over by changing its imports.

    from rmqtools.compat.client import ConsumeStatus, Message, Producer, PushConsumer

docs/migrating.md lists every difference.
"""
