"""Pure decisions: which queues, which broker, whether to retry. Time and randomness arrive as arguments."""
