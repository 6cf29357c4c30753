"""The commands of ``rmqtools`` by name. Each is imported only when it runs, so that ``--help`` is quick."""
