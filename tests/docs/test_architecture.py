"""The map of the code names modules that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

PLACEHOLDERS = {"methods/NAME.py", "methods/_NAME.py", "datasets/FAMILY.py"}


def test_every_module_that_the_map_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([\w/]+\.py)`", text)) - PLACEHOLDERS
    folders = ("bench", "reports", "tests")
    modules = {f"/{path.relative_to(ROOT)}" for name in folders for path in (ROOT / name).rglob("*.py")}
    assert len(names) > 30
    assert {name for name in names if not any(module.endswith(f"/{name}") for module in modules)} == set()
