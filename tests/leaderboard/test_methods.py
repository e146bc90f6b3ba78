"""Methods' pages, and their descriptions as HTML."""

from __future__ import annotations

import re
from pathlib import Path

from bench.leaderboard import methods
from bench.leaderboard.folder import method_page
from bench.leaderboard.methods import about

from .pages import Page, records
from .site_database import COMPETITORS, EVIL


def test_a_methods_page_describes_it(site: Path) -> None:
    page = Page(site / method_page("fedper"))
    assert "Arivazhagan et al., 2019" in page.text
    assert "The backbone is averaged as in FedAvg; every client keeps a head of its own." in page.text
    assert "fedavg.html" in " ".join(page.links)
    cells = records(next(table for table in page.tables if table[0][-1] == "Runs by seed"))
    assert cells[0]["Measured"] == "84.50"
    assert cells[0]["Runs by seed"] == "0 1 (diverged)"
    assert "not installed here" in about("x", {}).description
    evil = records(Page(site / method_page(EVIL)).tables[0])
    assert [(row["Name"], row["Default"], row["Tuned over"], row["Meaning"]) for row in evil] == [
        ("mu", "0.1", "0.1, 1.0", "–")
    ]
    fedprox = records(Page(site / method_page("fedprox")).tables[0])
    assert {row["Name"]: row["Range"] for row in fedprox} == {
        "weights": "uniform, samples",
        "mu": "≥ 0",
    }


def test_every_hyper_parameter_has_a_meaning() -> None:
    silent = [
        (name, field)
        for name, cls in COMPETITORS.items()
        if name != EVIL
        for field in cls.Hyper.model_fields
        if not cls.Hyper.meaning(field)
    ]
    assert silent == []


def test_docstrings_become_paragraphs_lists_code_and_formulas() -> None:
    shown = methods.html("One ``a.b``\nline.\n\n1. first x_ij,\n2. second: 1e-3 * best_val <b>.\n\n- a\n- b")
    assert shown.count("<p>") - shown.count("<li>") <= 1
    assert shown.count("<ol>") == shown.count("<ul>") == 1
    assert shown.count("<li>") == 4
    assert "<code>a.b</code>" in shown
    assert "<i>x</i><sub>ij</sub>" in shown
    assert "best_val &lt;b&gt;" in shown


def test_formulas_have_letters_and_indices() -> None:
    shown = methods.html("sum_j alpha_ij Theta'_g softmax_j dW_i max_{i, j} ||w||^2_k theta~_i^l <mu>")
    for part in ("<sub>j</sub>", "<i>α</i><sub>ij</sub>", "softmax<sub>j</sub>", "max<sub>i, j</sub>"):
        assert part in shown
    assert "<i>θ\u0303</i><sub>i</sub><sup>l</sup>" in shown
    assert "&lt;<i>μ</i>&gt;" in shown
    assert "_" not in shown
    assert "best_val, max_degree" in methods.html("best_val, max_degree")


def test_marks_stand_on_their_letters() -> None:
    shown = methods.html("theta~_i, Theta^, A^ x, Theta-bar_i^l, x^_vj, w' and Delta'_i; d theta^2, max'")
    for letter in ("θ\u0303", "Θ\u0302", "A\u0302", "Θ\u0304", "x\u0302", "Δ\u2032"):
        assert f"<i>{letter}</i>" in shown
    assert "<i>θ</i><sup>2</sup>" in shown
    assert not set("~^") & set(shown)


def test_words_between_asterisks_are_emphasised_and_products_are_not() -> None:
    shown = methods.html("it *ascends* that,\n*in the client*; W * mu_i, 2 * M, 1 <= k != 2 >= x")
    assert re.findall("<em>(.*?)</em>", shown) == ["ascends", "in the client"]
    assert shown.count("*") == 2
    assert "1 ≤ k ≠ 2 ≥ x" in shown


def test_no_description_keeps_a_raw_index() -> None:
    names = "|".join((*methods.GREEK, *methods.OPERATORS))
    for name in COMPETITORS:
        text = re.sub(r"<(code|pre)>.*?</\1>", "", about(name, COMPETITORS).description, flags=re.DOTALL)
        assert not re.search(rf"\b({names}|[A-Za-z])[~']?_\w", text), name
        assert not re.search(r"[~^]|\*\w|\w\*", text), name
