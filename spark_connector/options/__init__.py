"""The option table, the settings made from it, and the types of option values."""
