"""What FedSheafHN's experiments measure: speed, honest clients, and new beside old ones."""

from __future__ import annotations

from dataclasses import replace
from operator import sub

import numpy as np

from bench.studies.measures import TEST, CellReading, Measure, Values
from bench.studies.settings import Reading, epochs_at

SHARE = 0.9
"""The share of Local's accuracy at which a method counts as near it."""


def _epochs_to_level(cell: CellReading) -> Values:
    if cell.baseline is None:
        return ()
    curves = cell.results.curves(cell.group, cell.stage, cell.average)
    baseline = cell.results.aggregate(cell.baseline, cell.stage, cell.rule, cell.average)
    if baseline is None or len(curves) != baseline.n:
        return ()
    levels = SHARE * np.array(baseline.values)[:, None]
    is_reached = curves >= levels
    rows = np.where(is_reached.any(axis=1), is_reached.argmax(axis=1) + 1, curves.shape[1])
    return tuple(epochs_at(cell.group.settings, rows).tolist())


EPOCHS_TO_LEVEL = Measure(
    "epochs_to_level",
    "Epochs near Local",
    f"local epochs, those of a warm-up counted, until test accuracy first reaches {SHARE:.0%} of Local's "
    "with the same seed; all of a run's where it never does",
    _epochs_to_level,
    metric="epochs_to_level",
    digits=0,
)


def _honest(cell: CellReading) -> Values:
    values = []
    is_attacked = any(key.startswith("attack.") for key in cell.group.settings)
    for _, part in cell.rows.groupby("seed", sort=True):
        if is_attacked:
            malicious = cell.results.artefact(int(part["run_id"].iloc[0]), "malicious")
            if malicious is None:
                continue
            part = part[np.asarray(malicious)[part["client"].to_numpy()] == 0]
        if len(part):
            values.append(100.0 * float(part["value"].mean()))
    return tuple(values)


HONEST = Measure(
    "honest",
    "Honest clients",
    "test accuracy in percent over honest clients alone",
    _honest,
    metric="honest_accuracy",
    ranked=True,
)
NEWCOMERS_TRAINED = replace(
    TEST,
    name="after_training",
    title="After local epochs",
    meaning="test accuracy of new clients after their last local epoch",
    reading=Reading("trained", "last"),
)
NEWCOMERS_RECEIVED = replace(
    TEST,
    name="zero_shot",
    title="Zero-shot",
    meaning="test accuracy of new clients with the model they are welcomed with",
    reading=Reading("received", "last"),
)

TRAINED_CLIENTS = "trained_clients"
"""Name under which a run with newcomers keeps ``bench.engine.newcomers.last_shares``."""


def _of_trained_clients(cell: CellReading) -> Values:
    artefacts = cell.artefacts(TRAINED_CLIENTS)
    return tuple(100.0 * float(np.nanmean(shares)) for shares in artefacts if shares is not None)


def _newcomers_less_trained(cell: CellReading) -> Values:
    newcomers, trained_clients = NEWCOMERS_TRAINED.of(cell), _of_trained_clients(cell)
    return tuple(map(sub, newcomers, trained_clients)) if len(newcomers) == len(trained_clients) else ()


OF_TRAINED_CLIENTS = Measure(
    "trained_clients",
    "Train",
    "test accuracy of the clients that the server learned with (the figure's 'Train'), trained model of the "
    "last round; runs made before it was kept have none",
    _of_trained_clients,
    metric="accuracy_of_trained_clients",
)
NEW_LESS_TRAINED = Measure(
    "new_less_trained",
    "New less train",
    "new clients after their last local epoch less those, in points",
    _newcomers_less_trained,
    metric="new_less_trained",
    reading=NEWCOMERS_TRAINED.reading,
)

MEASURES = (
    EPOCHS_TO_LEVEL,
    HONEST,
    NEWCOMERS_TRAINED,
    NEWCOMERS_RECEIVED,
    OF_TRAINED_CLIENTS,
    NEW_LESS_TRAINED,
)
"""Beside those of any study."""
