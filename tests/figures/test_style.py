"""Looks: every method has its own, the same in all figures."""

from __future__ import annotations

from itertools import combinations

import pytest

from bench.engine.methods import METHODS
from bench.figures import style
from bench.reports.fedsheafhn import FedSheafHN
from bench.studies.experiment import Line
from bench.studies.study import STUDIES, Study


def test_no_two_methods_look_alike() -> None:
    listed = {line.method for study in STUDIES.all().values() for line in study.lines}
    looks = {name: style.look_of(name, Study) for name in (*METHODS.all(), *listed, "a_new_method")}
    for one, other in combinations(looks, 2):
        assert looks[one] != looks[other], (one, other)


def test_in_figures_of_a_study_its_own_proposed_method_alone_has_the_reserved_colour() -> None:
    for kind in STUDIES.all().values():
        lines = tuple(map(Line, dict.fromkeys((*METHODS.all(), *(line.method for line in kind.lines)))))
        looks = style.looks_of(kind(), lines)
        colours = {line.method: look.colour for line, look in looks.items()}
        reserved = {method for method, colour in colours.items() if colour == style.PROPOSED}
        assert reserved == {kind.proposed} - {""}, kind.name
        assert len(set(looks.values())) == len(lines), kind.name


def test_of_lines_of_one_method_the_plainest_has_its_look_and_every_other_one_of_its_own() -> None:
    own = FedSheafHN()
    lines = [
        Line("fedsheafhn", "Trimmed", {"method.attention": "none"}),
        *(Line(method) for method in ("local", "fedavg", "fedsheafhn")),
        *(Line("fedavg", f"FedAvg {number}", {"client.hidden": number}) for number in range(40)),
    ]
    looks = style.looks_of(own, tuple(lines))
    for place, method in enumerate(("local", "fedavg", "fedsheafhn"), start=1):
        assert looks[lines[place]] == style.look_of(method, own)
    assert looks[lines[1]].colour == style.BASELINE
    assert [line for line in lines if looks[line].colour == style.PROPOSED] == [lines[3]]
    assert len(set(looks.values())) == len(lines)


def test_signs_that_the_usual_font_lacks_are_in_another_that_is_installed() -> None:
    sign = "\N{MATHEMATICAL SCRIPT CAPITAL A}"  # matplotlib comes with STIX, which has it
    assert style.families("Accuracy ±1 %\n") == [style.FONT]
    first, *others = style.families(f"Accuracy {sign}")
    assert first == style.FONT
    assert len(others) == 1


def test_signs_that_no_font_has_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert style.families("\U0001fffe abc") == [style.FONT]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "\U0001fffe" in lines[0]
