"""Simulation: the engine beside the fake cluster, on a loop that does not wait, under trouble from a seed."""
