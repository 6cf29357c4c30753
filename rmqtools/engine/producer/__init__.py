"""Sending messages: encoding, choosing a queue, trying again, transactions, trace."""
