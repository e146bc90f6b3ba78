"""The map of the code names modules that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_module_that_the_map_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:bench|tests)/[\w/]+\.py)`", text))
    assert len(names) > 15
    assert {name for name in names if not (ROOT / name).is_file()} == set()
