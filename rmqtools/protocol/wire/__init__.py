"""Frames and commands of the remoting protocol, and the JSON of their bodies."""
