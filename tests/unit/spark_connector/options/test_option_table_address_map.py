from collections.abc import Callable

import pytest

from rmqtools.errors import ConfigError
from spark_connector.options.option_table import parse_options


def reach(addr: str) -> str:
    return addr


def test_a_function_as_address_map_is_refused_since_spark_makes_text_of_it():
    function: Callable[[str], str] = reach

    with pytest.raises(ConfigError, match="a function cannot travel in an option of Spark"):
        parse_options({"nameServer": "127.0.0.1:9876", "brokerAddressMap": str(function)})
