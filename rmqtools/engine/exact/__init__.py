"""Exact appends: each message is stored once in a queue, in order, whatever breaks."""
