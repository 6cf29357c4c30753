"""Typed headers of requests and responses: ``send``, ``pull``, ``offset``, ``group``, ``topic``.

``encode_header`` and ``decode_header`` are in ``codec``.
"""
