"""Reading a bundle: measured results in a folder, answering as a result database does."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.spec import RunSpec
from bench.store import bundle_check
from bench.store.arrays import unpack_array
from bench.store.bundle_format import MANIFEST, Manifest
from bench.store.bundle_query import filter_results, filter_runs
from bench.store.models import ClientResult
from bench.store.queries import RUN_COLUMNS

TEXTS = ("stage", "split", "rule", "metric")


class Bundle:
    """A bundle, read and checked whole when it is opened; it satisfies ``bench.report.source.Source``.

    Run ids are 1, 2, ... in the order of the file. ``traceback`` is empty: a bundle keeps none; so are
    ``bundle`` and ``bundle_state``: it does not say where its runs came from. ``hash`` is the SHA-256
    of ``bundle.json``, which holds those of the other files; ``source`` is what that says of its origin.

    Raises:
        RequestError: ``folder`` is no bundle, or a damaged one; the line names the file and what
            is wrong with it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        manifest, self.hash = bundle_check.read_manifest(folder)
        runs, results, curves, artefacts = bundle_check.read_tables(folder, manifest)
        self.source = manifest.source
        self._environments = _environments(manifest)
        self._partitions = _partitions(manifest)
        self._runs = _runs(runs, self._environments)
        self._results = _results(results)
        self._curves = {
            (run + 1, stage, split): counts.reshape(clients, rows).T.astype(np.int32)
            for run, stage, split, rows, clients, counts in curves
        }
        self._artefacts = {(run + 1, name): data for run, name, data in artefacts}

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run with the columns of ``Store.runs``, ordered by id; the same filters."""
        return filter_runs(self._runs, filters)

    def client_results(
        self,
        run_ids: Iterable[int],
        stage: str | None = None,
        split: str | None = None,
        rule: str | None = None,
    ) -> pd.DataFrame:
        """As ``Store.client_results``; values are bit by bit those of the database."""
        found = filter_results(self._results, run_ids, stage, split, rule)
        return found.astype(dict.fromkeys(TEXTS, "str"))

    def curve(self, run_id: int, stage: str, split: str) -> NDArray[np.int32]:
        """Correct predictions ``[rows, clients]`` of the test split; raises ``KeyError`` where none is."""
        return self._curves[run_id, stage, split].copy()

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """As ``Store.curves``; a bundle keeps the curves of the test split alone."""
        wanted = {int(run) for run in run_ids}
        return {
            (run, stage): counts
            for (run, stage, kept), counts in self._curves.items()
            if kept == split and run in wanted
        }

    def artefact(self, run_id: int, name: str) -> NDArray[Any]:
        """An array kept with a run; raises ``KeyError`` where there is none or it was too large."""
        return unpack_array(self._artefacts[run_id, name])

    def artefact_names(self, run_id: int) -> list[str]:
        """Names of the arrays kept with a run."""
        return sorted(name for run, name in self._artefacts if run == run_id)

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON)."""
        return self._environments.copy()

    def partitions(self) -> pd.DataFrame:
        """One row a partition: hash, dataset, scenario, clients, provenance (JSON)."""
        return self._partitions.copy()


def read_bundles(folder: Path) -> tuple[list[Bundle], list[RequestError]]:
    """The bundles in a folder, by name, and what is wrong with those that cannot be read.

    Both are empty where there is no such folder.
    """
    bundles: list[Bundle] = []
    damaged: list[RequestError] = []
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        try:
            bundles.append(Bundle(path.parent))
        except RequestError as error:
            damaged.append(error)
    return bundles, damaged


def shipped_bundles() -> tuple[list[Bundle], list[RequestError]]:
    """The bundles that come with the suite, ``results/measured``, as ``read_bundles`` gives them."""
    return read_bundles(Path(str(files("bench.results"))) / "measured")


def _environments(manifest: Manifest) -> pd.DataFrame:
    rows = [
        {"id": number, "hash": each.hash, "description": bundle_check.canonical(each.description)}
        for number, each in enumerate(manifest.environments, 1)
    ]
    return pd.DataFrame(rows, columns=["id", "hash", "description"])


def _partitions(manifest: Manifest) -> pd.DataFrame:
    rows = [
        each.model_dump() | {"provenance": bundle_check.canonical(each.provenance)}
        for each in manifest.partitions
    ]
    return pd.DataFrame(rows, columns=["hash", "dataset", "scenario", "clients", "provenance"])


def _runs(runs: pd.DataFrame, environments: pd.DataFrame) -> pd.DataFrame:
    numbers = dict(zip(environments["hash"], environments["id"], strict=True))
    whole_numbers = runs.select_dtypes("integer").columns
    whole = runs.astype(dict.fromkeys(whole_numbers, np.int64)).assign(
        id=np.arange(1, len(runs) + 1),
        cell=[RunSpec.model_validate_json(text).cell for text in runs["spec"]],
        traceback="",
        bundle="",
        bundle_state="",
        environment_id=runs["environment"].map(numbers).astype(np.int64),
    )
    return whole[list(RUN_COLUMNS)]


def _results(results: pd.DataFrame) -> pd.DataFrame:
    """Rows in the database's order; ``value`` from the counts where they are given."""
    value = (results["correct"] / results["samples"]).where(results["correct"].notna(), results["value"])
    results = results.assign(run_id=results["run"].astype(np.int64) + 1, value=value.astype(np.float64))
    columns = list(ClientResult.__table__.columns.keys())
    keys = ["run_id", "client", *TEXTS]
    results = results[columns].sort_values(keys, ignore_index=True)
    return results.astype({"client": np.int64, "samples": np.int64, **dict.fromkeys(TEXTS, "category")})
