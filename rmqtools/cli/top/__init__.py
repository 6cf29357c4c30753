"""``rmqtools top``: a live view of brokers, topics, groups, and of the owners of queues."""
