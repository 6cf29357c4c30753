"""Speed against the official Java client, and beside other Python clients, on one broker: ``make bench``."""
