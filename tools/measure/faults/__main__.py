"""All cases on the Docker cluster: ``make faults``; some: ``python -m tools.measure.faults 1 4``.

Prints the table of figures and ends with 1 if one is not met. Histories are left in ``.build/faults``.
"""

import argparse
import asyncio
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.docker_cluster import DockerCluster
from tests.support.docker_project import CHECKOUT, DockerProject
from tools.measure.faults.bench import Bench, Case
from tools.measure.faults.cases import CASES
from tools.measure.faults.figures import unmet

_SECONDS = 60.0


def main(arguments: Sequence[str]) -> int:
    """Run the cases named, or all."""
    logging.getLogger("rmqtools").addHandler(logging.NullHandler())
    parser = argparse.ArgumentParser(prog="python -m tools.measure.faults")
    parser.add_argument("numbers", type=int, nargs="*", help="of cases; none: all of them")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of each load")
    given = parser.parse_args(arguments)
    wanted = set(given.numbers) or {case.number for case in CASES}
    project = DockerProject()
    with project.in_use():
        project.up()
        cluster = DockerCluster(project)
        cluster.wait_ready()
        folder = Path(CHECKOUT, ".build/faults")
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(site=cluster, folder=folder, seconds=given.seconds)
        met = [_run(case, bench) for case in CASES if case.number in wanted]
    print(f"{sum(met)} of {len(met)} cases have all figures met")
    return 0 if all(met) else 1


def _run(case: Case, bench: Bench) -> bool:
    """Run one case and print its part of the table; whether all figures are met."""
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        outcome = asyncio.run(case.run(bench))
    finally:
        bench.site.restore()
    failed = unmet(outcome.figures)
    print(
        f"{case.number:2} {case.title}: {'NOT MET' if failed else 'met'} "
        f"({time.monotonic() - began:.0f} s, machine load {load:.1f} before)"
    )
    if outcome.verdict.sent:
        print(f"   {outcome.verdict.line()}")
    print("   " + "; ".join(map(str, outcome.figures)), flush=True)
    return not failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
