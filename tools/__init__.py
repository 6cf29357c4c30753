"""Programs for maintainers; no part of the packages."""
