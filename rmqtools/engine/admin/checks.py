"""Checks of groups and servers: one place puts what is known together with its findings.

Commands, the live view, the exporter and programs only show them.
"""

import asyncio
from dataclasses import replace
from weakref import WeakKeyDictionary

from rmqtools.clock import as_time
from rmqtools.engine.admin.brokers import BrokerAdmin
from rmqtools.engine.admin.groups import GroupAdmin
from rmqtools.engine.admin.pins import PinAdmin
from rmqtools.engine.connection.client import ClientCore
from rmqtools.model.group_view import DEFAULT_LIMITS, GroupLimits
from rmqtools.policy.broker_check import ClusterCheck, check_cluster
from rmqtools.policy.group_check import GroupCheck, Settling, check_group, check_pin_copies
from rmqtools.policy.severity import worst_first

_SETTLING: WeakKeyDictionary[ClientCore, Settling] = WeakKeyDictionary()
"""By client, since each look of ``top`` and the exporter has an ``Admin`` of its own."""


class CheckAdmin(GroupAdmin, PinAdmin, BrokerAdmin):
    """The methods that look for problems; :class:`rmqtools.aio.Admin` has them all."""

    async def check_cluster(self, *, timeout: float = 10.0) -> ClusterCheck:
        """Ask every broker and every name server for its state, and return it with the problems.

        Args:
            timeout: seconds for all of it; a server that has not answered by then has an error.

        Raises:
            RemotingError: no name server answers.
        """
        brokers, name_servers = await asyncio.gather(
            self.fetch_brokers(timeout=timeout), self.fetch_name_servers(timeout=timeout)
        )
        return check_cluster(brokers, name_servers)

    async def check_group(
        self, group: str, *, limits: GroupLimits = DEFAULT_LIMITS, ages: bool = False
    ) -> GroupCheck:
        """Return everything about a group with its problems, as ``rmqtools group check`` reports them.

        A group that no broker knows is one without members. See :meth:`fetch_group` for members and brokers
        that do not answer. What half of a rebalance shows, too (queues without an owner or with two,
        members without a queue or an answer), counts once it has lasted for five seconds: then this looks
        again before it returns, unless an earlier look of the same client has found it.

        Args:
            group: its name.
            limits: from when on a member counts as stuck, and a group as late.
            ages: whether to read the first message not consumed of each queue, for its ``oldest_ms``;
                always done if the limits have a ``max_age``.
        """
        settling = _SETTLING.setdefault(self._client, Settling())
        for looks in range(2):
            check = await self._look(group, limits, ages=ages)
            found, wait = settling.lasting(group, check.findings, now=self._client.clock.monotonic())
            if not wait or looks:
                break
            await asyncio.sleep(wait)
        return replace(check, findings=found)

    async def _look(self, group: str, limits: GroupLimits, *, ages: bool) -> GroupCheck:
        view = await self.fetch_group(group, ages=ages or limits.max_age is not None, limits=limits)
        check = GroupCheck(view=view, pin_copies=await self.fetch_pin_copies(group))
        in_force = check.pins.at(as_time(self._client.clock.now_ms()))
        found = [*check_group(view, in_force, limits), *check_pin_copies(check.pin_copies)]
        return replace(check, findings=tuple(worst_first(found)))
