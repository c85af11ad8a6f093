"""Which source to ask for next: query strategies by name, and how to write one more.

    from gpal.active.strategies import STRATEGIES, Strategy

    @STRATEGIES.register
    class Confusion(Strategy):
        name = "confusion"
        summary = "How close the two most probable classes are"

        def score(self, p):
            two = np.sort(p, axis=-1)[:, -2:]
            return two[:, 0] / two[:, 1]

It is then known by its name to the loop, to studies, to campaigns and to the command line; another
package registers its own by the entry point "gpal.strategies".
"""

from __future__ import annotations

from gpal.active.strategies.base import STRATEGIES, Strategy, as_strategy

__all__ = ["STRATEGIES", "Strategy", "as_strategy"]
