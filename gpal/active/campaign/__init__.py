"""A labelling campaign: the durable history of questions, labels and models in a folder.

with Campaign.start(catalog, "blazars") as campaign:
    targets = campaign.ask(10)
    source = int(campaign.table.ids[targets[0].row])
    campaign.label([Given(source, "bll", "ann")])
"""

from __future__ import annotations

from gpal.active.campaign.campaign import OTHER, Campaign, Given

__all__ = ["OTHER", "Campaign", "Given"]
