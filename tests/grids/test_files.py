"""Files that are no grids."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.grids import load_grid

DEEP = 3000
TEXTS = {
    "lists": f"a = {'[' * DEEP}{']' * DEEP}",
    "tables": f"a = {'{b = ' * DEEP}1{'}' * DEEP}",
    "keys": f"a{'.a' * DEEP} = 1",
    "digits": f"a = 1{'0' * 5000}",
    "hexadecimal": f"a = 0x1{'0' * 5000}",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_file_that_python_cannot_read_to_its_end_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(RequestError, match=str(path)) as refused:
        load_grid(str(path))
    assert "\n" not in str(refused.value)
