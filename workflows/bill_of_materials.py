"""The software bill of materials: every package of an environment, with its version and licence.

    python workflows/bill_of_materials.py ENVIRONMENT docs/sbom.cdx.json

CycloneDX, made by its own tool, the same for the same environment. Addresses of home pages and
registries are left out: they are in the packages, and say nothing of what is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def main(environment: str, target: str) -> None:
    made = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("cyclonedx-py")), "environment"),
            *("--pyproject", "pyproject.toml", "--output-reproducible", environment),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    bill = json.loads(made.stdout)
    for component in [*bill["components"], *bill["metadata"]["tools"].get("components", [])]:
        component.pop("externalReferences", None)
    bill["metadata"]["component"].pop("externalReferences", None)
    temporary = Path(target).with_suffix(".tmp")
    temporary.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
