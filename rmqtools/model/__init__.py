"""Plain values: queues, messages, routes, results, codes. Imports nothing of the package."""
