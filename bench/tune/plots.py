"""Figures of searches, as the library draws them, and their trials as CSV."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
from matplotlib import pyplot
from optuna.exceptions import ExperimentalWarning
from optuna.importance import PedAnovaImportanceEvaluator
from optuna.visualization import matplotlib as visualization

from bench.errors import RequestError
from bench.replacement import check_folder
from bench.tune.proposals import rebuilt
from bench.tune.record import Trial
from bench.tune.tuning import Tuning

VALIDATION = "Validation accuracy"
WIDTH, HEIGHT, PER_PARAMETER = 7.0, 4.0, 3.0
"""Inches of a figure; across of one parameter's slice."""

BEST = 0.25
"""Share of the trials that count as the best ones where importance is asked for."""

FILE = re.compile(r".+-(trials\.csv|(history|slice|importance)\.(pdf|png))")
"""What the files are called."""

LEAST = 8
"""Trials from which on importance is computed: two of them are the best quarter then."""


def check(folder: Path) -> None:
    """Raises ``RequestError`` unless ``folder`` is absent, or a folder in which only such figures lie."""
    check_folder(folder, "--plots")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    foreign_names = [name for name in names if not FILE.fullmatch(name)]
    if foreign_names:
        ending = f" and {len(foreign_names) - 1} more" if len(foreign_names) > 1 else ""
        raise RequestError(
            f"--plots {folder}: no figure of a search is {foreign_names[0]}{ending}: name another folder, or "
            "move that away"
        )


def draw(searches: Iterable[tuple[Tuning, Sequence[Trial]]], folder: Path) -> list[Path]:
    """Draw every search that has a trial with a number: its history, slices of the space and, from
    ``LEAST`` completed trials on, what mattered for being among the best (PED-ANOVA).

    Returns the files written: a PDF and a PNG of each figure, and a CSV of the trials.

    Raises:
        RequestError: none of the searches has a trial that was run to its end.
    """
    complete_searches = [(tuning, trials) for tuning, trials in searches if _complete_scores(trials)]
    if not complete_searches:
        raise RequestError("--plots: no search has a trial yet: run bench tune first, without --plots")
    folder.mkdir(parents=True, exist_ok=True)
    return [path for tuning, trials in complete_searches for path in _draw(tuning, trials, folder)]


def _complete_scores(trials: Sequence[Trial]) -> list[float]:
    return [trial.validation or 0.0 for trial in trials if trial.state == "complete"]


def _draw(tuning: Tuning, trials: Sequence[Trial], folder: Path) -> list[Path]:
    study = rebuilt(tuning, trials)
    stem = tuning.title.replace(" ", "-")
    plots: dict[str, Callable[[optuna.Study], Any]] = {
        "history": lambda study: visualization.plot_optimization_history(study, target_name=VALIDATION),
        "slice": lambda study: visualization.plot_slice(study, target_name=VALIDATION),
    }
    values = _complete_scores(trials)
    if len(values) >= LEAST and len(set(values)) > 1:
        plots["importance"] = lambda study: visualization.plot_param_importances(
            study, evaluator=PedAnovaImportanceEvaluator(target_quantile=BEST), target_name=VALIDATION
        )
    table = folder / f"{stem}-trials.csv"
    columns = ["number", "state", "validation", "client_epochs", "seconds"]
    rows = [trial.model_dump(include={*columns}) | trial.parameters for trial in trials]
    frame = pd.DataFrame(rows, columns=[*columns, *tuning.space], dtype=object)
    frame.to_csv(table, index=False, lineterminator="\r\n")
    paths = [table]
    for name, plot in plots.items():
        with warnings.catch_warnings(), pyplot.rc_context():
            warnings.simplefilter("ignore", ExperimentalWarning)
            plot(study)
            figure = pyplot.gcf()
            width = PER_PARAMETER * len(tuning.space) if name == "slice" else WIDTH
            figure.set_size_inches(width, HEIGHT)
            for axes in figure.axes:
                axes.set_title("")
                axes.set_title("", loc="left")
                axes.set_xlabel(axes.get_xlabel().replace(".", "\n"), fontsize="small")
            figure.suptitle(tuning.title)
            for kind in ("pdf", "png"):
                paths.append(folder / f"{stem}-{name}.{kind}")
                metadata = {"CreationDate": None} if kind == "pdf" else {}
                figure.savefig(paths[-1], dpi=150, bbox_inches="tight", metadata=metadata)
            pyplot.close(figure)
    return paths
