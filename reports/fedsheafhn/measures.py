"""Measures of FedSheafHN's experiments: speed, honest clients, and new clients against old ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from bench.studies.measures import TEST, Measure
from bench.studies.members import Members
from bench.studies.settings import Reading

SHARE = 0.9
"""A method is near Local if its accuracy is at least this share of Local's accuracy."""


def _epochs_to_level(members: Members) -> pd.Series[float]:
    curves = members.curves().set_index("member")
    level = SHARE * members.accuracy(of="baseline").reindex(curves.index)
    curves, level = curves[level.notna()], level.dropna()
    reached = curves.loc[curves["value"] >= level, "row"].groupby("member").min()
    rows = curves["row"].groupby("member").max()
    rows.update(reached)
    epochs = pd.Series(np.nan, members.rows.index)
    for place, part in rows.groupby(members.rows["place"].reindex(rows.index)):
        settings = members.settings[place]
        step = 1 if settings["protocol.evaluate"] == "epoch" else int(settings["protocol.local_epochs"])
        epochs[part.index] = int(settings.get("method.warm_up_epochs", 0)) + step * part
    return epochs.dropna()


EPOCHS_TO_LEVEL = Measure(
    "epochs_to_level",
    "Epochs near Local",
    f"local epochs, those of a warm-up counted, until test accuracy first reaches {SHARE:.0%} of Local's "
    "with the same seed; all of a run's where it never does",
    _epochs_to_level,
    digits=0,
)


def _honest(members: Members) -> pd.Series[float]:
    clients, malicious = members.clients, members.artefacts("malicious")
    is_honest = [
        member not in malicious.index or not malicious[member][client]
        for member, client in zip(clients["member"], clients["client"], strict=True)
    ]
    return 100.0 * clients[is_honest].groupby("member")["value"].mean()


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


def _of_trained_clients(members: Members) -> pd.Series[float]:
    """Mean in percent of ``bench.engine.newcomers.last_shares``, which runs with newcomers store."""
    shares = members.artefacts("trained_clients")
    return shares.map(lambda values: 100.0 * float(np.nanmean(values))).astype(float)


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
    lambda members: (members.accuracy() - _of_trained_clients(members)).dropna(),
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
"""Measures of this study, in addition to the measures of all studies."""
