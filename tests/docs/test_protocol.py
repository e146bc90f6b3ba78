"""docs/protocol.md and docs/citing.md say what the code does."""

import re
from pathlib import Path

from bench import __version__
from bench.engine.methods import METHODS
from bench.federation.dirichlet import CONCENTRATION
from bench.federation.graph import SAMPLES
from bench.frames.spread import LEAST_PARTITIONS
from bench.frames.verdicts import EQUIVALENCE_LEVEL, FLOOR, GRADES, LEAST_RUNS, LEVEL, STATES
from bench.spec import Protocol
from bench.statistics.paired import ALPHA, REGION
from bench.statistics.summary import DRAWS, LEAST
from bench.studies.study import STUDIES
from bench.studies.wording import RULES

ROOT = Path(__file__).parents[2]
TEXT = " ".join((ROOT / "docs" / "protocol.md").read_text(encoding="utf-8").split())


def test_the_thresholds_are_those_of_the_code() -> None:
    tail = (1 + LEVEL) / 2
    assert f"≤ max({FLOOR:g} point, t({tail:g}) √(SE² + draws · s_d²))" in TEXT
    assert f"at least {LEAST_RUNS} runs, and the {100 * EQUIVALENCE_LEVEL:g} % interval" in TEXT
    assert f"at least {LEAST_PARTITIONS} partitions" in TEXT
    assert f"±{STUDIES.named('fedsheafhn').margin:g} points" in TEXT
    assert all(f"`{grade}`" in TEXT for grade in GRADES)
    assert f"corrected p < {ALPHA:g} and a mean difference beyond {REGION:g} points" in TEXT
    assert f"interval lies within ±{REGION:g} points" in TEXT
    assert {LEAST: "none for fewer than three columns"}[3] in TEXT
    assert f"{DRAWS:,} bootstrap draws" in TEXT
    assert f"({Protocol().partition_seed} unless a grid says otherwise)" in TEXT
    assert f"concentration {CONCENTRATION:,.0f}" in TEXT
    assert {SAMPLES: "five half-samples of each of `clients / 5`"}[5] in TEXT


def test_states_rules_and_the_studies_primary_readings_are_complete() -> None:
    for state in ("done", *STATES.keys() - {"not_run"}):
        assert f"`{state}`" in TEXT
    assert set(re.findall(r"\| `(\w+)` \| (?:the|for)", TEXT)) >= set(RULES)
    for name, study in STUDIES.all().items():
        primary = study.primary
        row = re.search(rf"\| `{name}` \| `(\w+)`, `(\w+)`[^|]*\| ([^|]*)\| `(\w+)` \|", TEXT)
        assert row is not None, name
        stage, rule, average, baseline = row.groups()
        assert (stage, rule, baseline) == (primary.stage, primary.rule, study.baseline)
        assert f"(`{study.average}`)" in average or (study.average, average.strip()) == (
            "clients",
            "unweighted",
        )


def test_the_citations_name_this_version() -> None:
    citing = (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")
    assert f"version = {{{__version__}}}" in citing
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in cff
    for text in (citing, cff):
        assert "The bench authors" in text


def test_every_method_but_the_controls_names_its_paper() -> None:
    without = {name for name, method in METHODS.all().items() if not method.reference}
    assert without == {"local", "majority"}
