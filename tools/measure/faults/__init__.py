"""Faults of servers, networks and clients under load, and what they cost: ``make faults``."""
