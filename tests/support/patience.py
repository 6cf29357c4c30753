"""Deadlines of what tests wait for, on a machine of any load. None is a promise of the product."""

PATIENCE = 600.0
"""Seconds until a condition must hold; ends a test that would hang."""

PROGRAM_PATIENCE = 800.0
"""Seconds for a program that a test starts, perhaps with Spark; less than a test has (pyproject.toml)."""

PATIENT_REQUEST = 30.0
"""Seconds for one request or send to a real broker, which may answer later than the default 3 s."""

PATIENT_WRITE = {"sendTimeoutMs": "30000"}
"""The same for the options of a write in Spark: what no try has stored for certain may be stored twice."""
