"""The base classes of the blocking classes: everything of them that is more than one line."""
