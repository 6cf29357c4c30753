"""The table of cases, by number."""

from tools.measure.faults.bench import Case
from tools.measure.faults.broker_cases import all_brokers_down, killed_master, paused_master
from tools.measure.faults.full_disk_cases import full_disk
from tools.measure.faults.member_cases import killed_members
from tools.measure.faults.name_server_cases import name_server_away
from tools.measure.faults.network_cases import cut_answers, dropped_answers, slow_link
from tools.measure.faults.replica_cases import master_away, slave_away
from tools.measure.faults.route_cases import no_write_permission, read_only_topic
from tools.measure.faults.storage_cases import empty_broker, expired_messages

CASES = (
    Case(1, "one master of three is killed", killed_master),
    Case(2, "one master of three stands still", paused_master),
    Case(3, "answers are lost", dropped_answers),
    Case(4, "answers are cut", cut_answers),
    Case(5, "a slow link", slow_link),
    Case(6, "name servers are away", name_server_away),
    Case(7, "all masters are killed", all_brokers_down),
    Case(8, "a broker loses its write permission", no_write_permission),
    Case(9, "a topic becomes read-only", read_only_topic),
    Case(10, "a full disk", full_disk),
    Case(11, "messages expire while they are read", expired_messages),
    Case(12, "a slave is killed that has to store, too", slave_away),
    Case(13, "a master is killed, and its slave is read", master_away),
    Case(14, "a broker comes back empty", empty_broker),
    Case(15, "a member is killed", killed_members),
)
QUICK = (1, 2, 3, 4, 5, 6, 7, 15)
"""The most telling ones, for ``make test-long``."""
