"""Which queues each member of a group owns, pure: one file per strategy, ``share`` for whoever asks one."""
