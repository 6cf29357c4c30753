"""Which address of a broker set to talk to.

Source of the rules: MQClientInstance.findBrokerAddressInSubscribe, -Publish, -Admin (Java client).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rmqtools.model.route import MASTER_ID

BrokerAddrTable = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class FoundBroker:
    """An address, and whether a slave listens there."""

    broker_addr: str
    is_slave: bool


def find_in_subscribe(
    table: BrokerAddrTable, broker_name: str, broker_id: int = MASTER_ID, *, only_this_broker: bool = False
) -> FoundBroker | None:
    """The broker asked for; for a slave id the next one too; else any of the set, unless forbidden."""
    addrs = table.get(broker_name) or {}
    is_slave = broker_id != MASTER_ID
    addr = addrs.get(broker_id) or (addrs.get(broker_id + 1) if is_slave else None)
    if addr:
        return FoundBroker(addr, is_slave)
    return None if only_this_broker else find_in_admin(table, broker_name)


def find_in_publish(table: BrokerAddrTable, broker_name: str) -> str | None:
    """The master: nobody else takes messages."""
    return (table.get(broker_name) or {}).get(MASTER_ID)


def find_in_admin(table: BrokerAddrTable, broker_name: str) -> FoundBroker | None:
    """Any broker of the set, the lowest id first."""
    addrs = table.get(broker_name) or {}
    return next((FoundBroker(addrs[id_], id_ != MASTER_ID) for id_ in sorted(addrs)), None)
