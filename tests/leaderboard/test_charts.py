"""The data of charts as scripts, and the library that draws them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.leaderboard import charts
from bench.leaderboard.charts import script_json


def test_scripts_hold_no_sign_that_html_knows() -> None:
    value = {"a</script>": ["\u2028\u2029é", "<!--", 1.5, None, True]}
    text = script_json(value)
    assert not set("<>&'\u2028\u2029é") & set(text)
    assert json.loads(text) == value
    with pytest.raises(ValueError, match="Out of range"):
        script_json(float("nan"))


def test_the_library_is_named_by_version_and_hash(site: Path) -> None:
    library = charts.library()
    assert library.sha256[:12] in library.file
    assert (site / "assets" / library.file).read_text(encoding="utf-8") == library.text
    assert "window.vegaEmbed" in library.text
    assert library.sha256 in (site / "about.html").read_text()


@pytest.mark.parametrize("changed", ["script", "version"])
def test_a_script_that_is_not_known_is_refused(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if changed == "script":
        monkeypatch.setattr("vl_convert.javascript_bundle", lambda: "window.vegaEmbed = 1")
    else:
        monkeypatch.setattr(charts, "version", lambda package: "0.0.1")
    with pytest.raises(RequestError, match="SHA-256") as refused:
        charts.library()
    assert "\n" not in str(refused.value)
