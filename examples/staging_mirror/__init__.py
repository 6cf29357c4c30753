"""A share of production's messages on one staging machine."""
