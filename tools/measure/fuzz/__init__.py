"""Damaged bytes for everything that decodes what comes from the network."""
