"""Classes that SQL users may name in options; the one place of the connector that reads the environment.

SQL users can write options, and importing a module or calling a function runs a program. The operator who
starts Spark lists the modules, in a variable that neither SQL nor an option can set: the processes that plan,
read and write inherit the environment of Spark's own process.
"""

import os
from collections.abc import Callable
from typing import Any, Final

from rmqtools.errors import ConfigError
from rmqtools.plug_in import Role, load_class

LISTED: Final = "RMQTOOLS_SPARK_PLUG_INS"


def load_listed(text: str, *, what: str, role: Role) -> Callable[..., Any]:
    """Return the class that ``module:Class`` names if the environment of this process lists the module.

    Args:
        text: the name.
        what: its name in errors.
        role: the methods that the class needs.

    Raises:
        ConfigError: the module is not listed, and is not imported; or it has no such class of this role.
    """
    module = text.partition(":")[0]
    listed = [name.strip() for name in os.environ.get(LISTED, "").split(",") if name.strip()]
    if module not in listed:
        setting = f"{LISTED}={','.join([*listed, module])}"
        raise ConfigError(
            f"{what}: module {module!r} is not in the environment variable {LISTED}: in Spark only listed "
            f"modules are loaded. Set {setting} before Spark starts (spark-submit, pyspark, a Connect or "
            f"Thrift server), and for executors --conf spark.executorEnv.{setting}"
        )
    return load_class(text, what=what, role=role)
