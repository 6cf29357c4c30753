"""Speed and memory beside other Python clients: the group ``peers`` of ``python -m tools.measure.bench``."""
