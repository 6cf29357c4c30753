"""One member of a consumer group: its membership, the queues it holds, its offsets."""
