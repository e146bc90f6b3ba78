"""Results as pandas frames, of the user's own database and of the results that come with the suite;
``docs/notebook.ipynb`` shows them.

Cells, ranks and runs are kept under ``BENCH_HOME/frames`` for as long as neither results nor code change.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from bench.metric_names import ACCURACY, Metric


def cells(
    *,
    db: str | None = None,
    own: bool = False,
    primary: bool = True,
    metric: Metric = ACCURACY,
    **filters: Any,
) -> pd.DataFrame:
    """One row a cell of a study's tables beside one published table: the columns
    ``bench.frames.graded_cells.COLUMNS``.

    ``db`` is a database URL (default: the one in ``BENCH_HOME``), ``own`` leaves out what comes with the
    suite. ``metric`` is what clients are scored by (``bench.metric_names.METRICS``); of others than accuracy
    nothing is published, and no cell has a verdict. With ``primary`` False the cells under every reading,
    else those that verdicts rest on. ``filters`` are columns and a value or a list of values each:
    ``dataset="cora", method=["local"]``.

    Raises:
        RequestError: no runs, a database that cannot be read, or no run with the metric.
    """
    frame = _read("cells", db, own, filters, metric)
    frame = frame[frame["primary"]] if primary else frame
    return frame.drop(columns="primary").reset_index(drop=True)


def ranks(*, db: str | None = None, own: bool = False, **filters: Any) -> pd.DataFrame:
    """One row a study and method: its mean ``rank`` by accuracy over ``tasks``, the 95 % interval ``low`` to
    ``high``, its ``group`` of ties (1: not significantly worse than the best), and ``minus_baseline`` in
    points. Parameters and errors as of ``cells``.
    """
    return _read("ranks", db, own, filters)


def runs(*, db: str | None = None, own: bool = False, **filters: Any) -> pd.DataFrame:
    """One row a run: what it was, how it ended and what it cost; docs/results-format.md has all columns.

    ``run`` is its number, by which ``clients`` and ``curves`` belong to it, ``settings`` a JSON object of all
    its settings, dotted as in ``--set``, ``test`` its test accuracy in percent (mean over clients of the
    trained model at the round of best validation accuracy). Parameters and errors as of ``cells``.
    """
    return _read("runs", db, own, filters)


def clients(
    *,
    db: str | None = None,
    own: bool = False,
    stage: str = "trained",
    rule: str = "best_val",
    split: str = "test",
    metric: Metric = ACCURACY,
    **filters: Any,
) -> pd.DataFrame:
    """One row a run and client: ``accuracy``, or the other ``metric`` (of the test split alone), in percent
    over ``samples``, at a stage, by a selection rule.

    Columns: ``run``, ``spec_hash``, ``dataset``, ``scenario``, ``clients`` (how many), ``method``, ``seed``,
    ``client`` (from 0), ``stage``, ``split``, ``rule``, the metric, ``samples``. Unless asked for otherwise
    the trained model (``stage``; or ``received``) on the ``test`` split (or ``val``, ``train``) at the round
    of best validation accuracy (``rule`` ``best_val``; or ``last``, ``best_test``, ``client_best_val``).
    Other parameters and errors as of ``cells``.
    """
    return _read("clients", db, own, {**filters, "stage": stage, "rule": rule, "split": split}, metric)


def curves(
    *, db: str | None = None, own: bool = False, stage: str = "trained", split: str = "test", **filters: Any
) -> pd.DataFrame:
    """One row a run and evaluation, numbered from 1: ``accuracy`` in percent, mean over clients.

    Columns: those that name the run in ``clients``, ``stage`` (``trained`` unless asked for ``received``),
    ``split`` (``test``), ``evaluation``, ``accuracy``. Other parameters and errors as of ``cells``.
    """
    return _read("curves", db, own, {**filters, "stage": stage, "split": split})


def _read(
    name: str, db: str | None, own: bool, filters: dict[str, Any], metric: Metric = ACCURACY
) -> pd.DataFrame:
    from bench.frames.whole_frames import kept, matching, whole_frame

    if name in ("cells", "ranks", "runs"):
        return matching(kept(name, db, own, metric), filters)

    from bench.studies.shipped import opened_results

    with opened_results(db, own) as source:
        return whole_frame(name, source, metric, filters)
