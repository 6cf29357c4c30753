"""Refuses tables of Spark's catalog, whose options Spark does not pass to Python data sources; pure.

What arrives instead (PySpark 4.3): the table's properties, its options among them as ``option.*``, when Spark
asks for the columns of a new table; nothing, or the path alone, when the table is read or written.
"""

from collections.abc import Iterable
from typing import Final

from rmqtools.errors import ConfigError
from spark_connector.options.option import GivenOptions, Where

_PROPERTIES: Final = frozenset(
    ("owner", "provider", "external", "location", "is_managed_location", "comment", "collation")
)
CATALOG_REMEDY: Final = (
    "Spark passes Python data sources no options of a catalog table; use CREATE TEMPORARY VIEW name USING "
    "rocketmq OPTIONS (nameServer 'host:port', topic 'Orders')"
)


def refuse_table_properties(names: Iterable[str]) -> None:
    """Refuse the properties of a catalog table in place of options.

    Source of the names: TableCatalog.RESERVED_PROPERTIES, OPTION_PREFIX (Spark).

    Raises:
        ConfigError: there is one.
    """
    for name in names:
        if name.lower() in _PROPERTIES or name.lower().startswith("option."):
            raise ConfigError(f"format rocketmq has no catalog tables: {CATALOG_REMEDY}")


def refuse_no_options(given: GivenOptions) -> None:
    """Refuse a read or write without any option of ours, which is what a catalog table leads to.

    Raises:
        ConfigError: only options of Spark itself are given, or none.
    """
    if all(one.option.where is Where.SPARK for one in given):
        raise ConfigError(f"no option is given, set nameServer and topic: {CATALOG_REMEDY}")
