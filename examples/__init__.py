"""Programs that run as they stand; see README.md beside this file."""
