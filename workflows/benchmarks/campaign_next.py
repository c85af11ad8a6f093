"""How long a campaign's next question takes after a label.

    python workflows/benchmarks/campaign_next.py [--labels 5]

A campaign on 4FGL-DR4 with bll, fsrq and psr, its first model fitted. Then each time the first
target gets the class that is most probable for it, and the campaign is asked again: first by the
command `gpal learn next` in a process of its own, then in one Python process, whose first question
makes the graphs that the others share. Printed are seconds of wall clock and of CPU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def timed(name: str, ask: Callable[[], Any]) -> None:
    """Print what a question takes, its child processes included."""
    before, wall = os.times(), time.perf_counter()
    ask()
    spent = sum(now - then for now, then in zip(os.times()[:4], before[:4], strict=True))
    print(f"{name}: {time.perf_counter() - wall:.1f} s, {spent:.1f} CPU s", flush=True)


def label_first(campaign: Any) -> None:
    """Give the first target its most probable class."""
    from gpal.active.campaign import Given

    (target,) = campaign.ranking(campaign.scores(), 1)
    name = max(target.probabilities, key=target.probabilities.get)
    campaign.label([Given(int(campaign.table.ids[target.row]), name, "benchmark")])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=5)
    asked = parser.parse_args()

    from gpal.active.campaign import Campaign
    from gpal.catalog import load_catalog

    catalog = load_catalog("4fgl-dr4").with_classes(["bll", "fsrq", "psr"])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "campaign"
        with Campaign.start(catalog, folder) as campaign:
            campaign.refit()
        command = [str(Path(sys.executable).parent / "gpal"), "learn", "next", "--session"]

        def by_command() -> None:
            subprocess.run([*command, str(folder)], check=True, stdout=subprocess.DEVNULL)

        timed("command, no new label", by_command)
        for _ in range(3):
            with Campaign(folder) as campaign:
                label_first(campaign)
            timed("command, a new label", by_command)
        with Campaign(folder) as campaign:
            for k in range(asked.labels):
                label_first(campaign)
                timed(f"one process, label {k + 1}", campaign.ask)


if __name__ == "__main__":
    main()
