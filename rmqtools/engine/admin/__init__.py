"""Administration: topics, offsets, groups, and the owners of queues."""
