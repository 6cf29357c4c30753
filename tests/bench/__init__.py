"""Speed against the official Java client, on one machine and one broker: ``make bench``."""
