"""The version of this package, below all layers: members report it to those who look at their group."""

__version__ = "0.4.0"
