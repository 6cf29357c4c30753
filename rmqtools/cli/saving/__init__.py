"""Files that commands write: pictures, and rows of messages."""
