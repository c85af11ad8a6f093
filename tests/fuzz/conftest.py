"""`--mutations N`: how many damaged copies of every subject; `--first-seed S`: where to begin."""

from __future__ import annotations

import pytest
from harness import Subject, attack


@pytest.fixture
def withstands(request, tmp_path):
    """A function that attacks a subject and fails on one fault; its seeds make it again."""

    def check(subject: Subject) -> None:
        number = request.config.getoption("--mutations")
        first = request.config.getoption("--first-seed")
        tally = attack(subject, tmp_path, number, first)
        line = f"{subject.name}: seeds {first} to {first + number - 1}: {tally}"
        print(line)
        request.node.user_properties.append(("attack", line))
        shown = "\n".join(str(fault) for fault in tally.faults[:10])
        assert not tally.faults, f"{len(tally.faults)} faults, e.g.\n{shown}"

    return check
