"""Decisions, pure: which queues, which broker, whether again. Time and chance arrive as arguments."""
