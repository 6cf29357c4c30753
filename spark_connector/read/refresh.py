"""Makes a temporary view anew, because Spark plans a DataFrame's offsets once and keeps them.

spark_connector.refresh(spark, "orders")
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import StructType

from rmqtools.errors import ConfigError
from rmqtools.unknown_name import name_hint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMAT: Final = "rocketmq"
_RELATION: Final = "DataSourceV2Relation"


def refresh(spark: "SparkSession", view: str, options: Mapping[str, str] | None = None) -> None:
    """Make a temporary view of one ``load()`` anew, with its options, to show the messages stored now.

    Frames that were made from the view before keep their messages. On Spark Connect the options of a view
    are unknown: without ``options``, the SQL statement that makes the view anew is printed instead, without
    values.

    Args:
        spark: the session of the view.
        view: its name.
        options: other options than those that the view has.

    Raises:
        ConfigError: there is no such view, or it is not one of this format, or its frame was changed after
            ``load()``.
    """
    schema = None
    if (session := getattr(spark, "_jsparkSession", None)) is not None:
        relation = _relation(spark, session, view)
        schema = StructType.fromJson(json.loads(relation.schema().json()))
        options = dict(relation.options().asCaseSensitiveMap()) if options is None else options
    if options is None:
        print(
            f"CREATE OR REPLACE TEMPORARY VIEW {_quoted(view)} USING {_FORMAT} OPTIONS (nameServer '...', "
            "topic '...')  -- with the view's own options; or call refresh(spark, view, options)"
        )
        return
    reader = spark.read.format(_FORMAT).options(**options)
    frame = (reader if schema is None else reader.schema(schema)).load()
    frame.createOrReplaceTempView(view)


def _relation(spark: "SparkSession", session: Any, view: str) -> Any:
    """Return the relation that a view consists of, in the JVM."""
    found = session.sessionState().catalog().getTempView(view)
    if not found.isDefined():
        known = [table.name for table in spark.catalog.listTables() if table.isTemporary]
        hint = name_hint(view, known) if known else "there is none"
        raise ConfigError(f"there is no temporary view {view!r} ({hint})")
    (plan, *others) = _leaves(found.get())
    relation = found.get().children().apply(0) if found.get().nodeName() == "View" else found.get()
    if others or plan.nodeName() != _RELATION or plan.table().name() != _FORMAT:
        raise ConfigError(f"view {view!r} is not one of format {_FORMAT}: make it again yourself")
    if relation.nodeName() != _RELATION:
        raise ConfigError(
            f"view {view!r} selects or changes what load() returned: make it again yourself, or make a view "
            "of load() alone, refresh that one, and select from it in SQL"
        )
    return relation


def _leaves(plan: Any) -> list[Any]:
    found = plan.collectLeaves()
    return [found.apply(index) for index in range(found.size())]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
