"""Features of servers as a table, for programs that print it.

    for name, brokers, proxy in feature_rows():
        print(name, brokers, proxy, sep=" | ")

docs/compatibility.md has the same table with the tests that show each row.
"""

from rmqtools.policy.endpoint.features import FEATURES, Feature, feature_rows

__all__ = ["FEATURES", "Feature", "feature_rows"]
