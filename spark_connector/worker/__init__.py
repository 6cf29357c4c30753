"""Spark's Python processes: cached clients, garbage collection, interpreters, error reports.

Spark writes a task's command and then its input to a Python worker and waits. Over TCP the second write waits
for an acknowledgement that the worker's side delays by 40 ms.
"""
