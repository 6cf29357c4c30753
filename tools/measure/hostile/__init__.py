"""Hostile servers, each in a process of its own, and what they cost a client."""
