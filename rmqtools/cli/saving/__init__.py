"""Files that commands write: pictures, rows of messages; and how far the work is."""
