"""How every number of the site is computed, in words made from the constants that compute it."""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.verdicts import FLOOR, SPREADS
from bench.report.wording import AVERAGES, RULES, STAGES
from bench.statistics.bradley_terry import DRAWS, PRIOR
from bench.statistics.paired import ALPHA, REGION
from bench.statistics.ranks import LEAST
from bench.statistics.summary import LEVEL

Definition = tuple[str, str, str]
"""A number's name, its formula (or nothing), and what it means."""


def definitions() -> Sequence[Definition]:
    """One entry a number, in the order of the boards."""
    percent = f"{100 * LEVEL:g} %"
    stages = "; ".join(f"{name}: {text}" for name, text in STAGES.items())
    rules = "; ".join(f"{name}: {text}" for name, text in RULES.items())
    averages = "; ".join(f"{name}: {text}" for name, text in AVERAGES.items())
    return (
        ("Stage", "", f"Which model is evaluated. {stages}."),
        (
            "Selection rule",
            "",
            f"Which round's model counts. {rules}. A study fixes stage and rule of its comparison before "
            "looking at numbers; validation decides, except under best_test, which is shown for comparison "
            "with released code and on which no verdict rests.",
        ),
        (
            "Accuracy of a run",
            "a = mean over clients of correct / samples, or Σ correct / Σ samples",
            f"In percent, test data. The study says how clients are averaged. {averages}. Every client with "
            "test samples counts.",
        ),
        (
            "Measured",
            "m ± s, m = mean of a over the n seeds, s² = Σ(a − m)² / (n − 1)",
            "Runs without numbers are not replaced by anything: n says how many there are, and the reason "
            "names the others.",
        ),
        (
            f"{percent} interval",
            "m ± t(n − 1) · s / √n",
            "Student's interval of the mean over seeds. Where all seeds share one partition it holds the "
            "spread of training alone. None for one seed.",
        ),
        (
            "Tie group",
            "group 1: the best mean and all that are not significantly worse",
            "Within one task (data set, scenario, number of clients). All pairs of methods are compared by a "
            "two-sided paired t test over clients (mean over seeds; samples of one part count as one), or "
            "over partitions where the task has several; Holm's correction over all pairs. Worse: "
            f"corrected p below {ALPHA:g} and a mean difference of more than {REGION:g} points. No group: a "
            "method in other settings, a reference, or a task with fewer than two methods.",
        ),
        (
            "Verdict",
            f"reproduced: |m − p| ≤ max({FLOOR:g} point, {SPREADS:g} √(s_p² + s² + s_d²))",
            "p ± s_p is the published value, s_d the spread over partitions where at least three were run. "
            "Else above or below. Not comparable: the protocol differs in something that matters, the "
            "published value comes from elsewhere, or there are fewer than two seeds; the reason says which.",
        ),
        (
            "Worst client, bottom 10 %, clients below the baseline, std over clients",
            "",
            "Computed for every run over its clients, then averaged over seeds. A client is below the "
            "baseline if its accuracy is lower than under the baseline with the same seed and partition.",
        ),
        (
            "Seconds, megabytes, peak memory",
            "",
            "Seconds of a run in all: clients, server and evaluation; machines differ and were shared. "
            "Megabytes are counted where messages pass between client and server, both directions. Peak "
            "memory is, on a CPU, all that the process holds: Python, libraries and data included.",
        ),
        (
            "Mean rank",
            "",
            "Over the tasks that a method has numbers in, among the methods measured there; ties share "
            "their mean. Tasks: measured of planned. Nothing is imputed. Groups over tasks: Friedman's "
            f"test, then Nemenyi's, on the tasks that all methods have; none for fewer than {LEAST} tasks.",
        ),
        (
            "Strength",
            "log odds of winning against the average method",
            "Bradley-Terry, from the paired tests; ties are half a win, every task has equal weight, with "
            f"{PRIOR:g} of a task in which all tie. Interval: bootstrap over tasks, {DRAWS} draws.",
        ),
        (
            "Settings",
            "",
            "Default: the settings that the study's grids plan, the same for all methods and not tuned. "
            "Tuned: the configuration that 'bench tune' found by validation accuracy, its budget used up, "
            "run with seeds that the search did not see; the row says how many trials it had. Other settings "
            "are written out in the row. Only rows in default settings have a tie group.",
        ),
        (
            "Origin",
            "",
            "Own: from the database that the site was built from. Shipped: results that come with the "
            "suite. Bundle: imported from somebody else; unverified until a sample of its runs was made "
            "again here, then verified or contradicted. Methods that are no part of the suite enter a "
            "ranking unless a run of theirs is unverified or contradicted.",
        ),
    )
