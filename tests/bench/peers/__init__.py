"""Speed and memory beside the other Python clients: the group ``peers`` of ``python -m tests.bench``."""
