"""Measures to compare with the committed runs of FedAux's repository, for single clients and rounds."""

from __future__ import annotations

import pandas as pd

from bench.studies.measures import Measure
from bench.studies.members import Members
from bench.studies.settings import Reading

CLIENT, ROUND = "Client ", "Round "
"""Prefixes of labels of points. The number of a client (from 0) or of a round (from 1) follows."""

ALL_CLIENTS = "Mean"
"""Label of the point for the mean over clients."""


def _of_client(members: Members) -> pd.Series[float]:
    """Test accuracy in percent of the client that the point names, or the mean over clients."""
    clients = members.clients
    point = clients["member"].map(members.rows["point"])
    is_meant = (point == ALL_CLIENTS) | (CLIENT + clients["client"].astype(str) == point)
    return 100.0 * clients[is_meant].groupby("member")["value"].mean()


def _by_round(members: Members) -> pd.Series[float]:
    """Mean test accuracy in percent at the round that the point names."""
    curves = members.curves()
    point = curves["member"].map(members.rows["point"])
    is_meant = ROUND + curves["row"].astype(str) == point
    return curves[is_meant].set_index("member")["value"]


def _client_measure(reading: Reading, title: str, printed: str = "", is_extra: bool = False) -> Measure:
    return Measure(
        f"of_client_{reading.stage}_{reading.rule}",
        title,
        "test accuracy in percent of the client that the line names"
        + (", received model" if reading.stage == "received" else ""),
        _of_client,
        metric="accuracy_of_client",
        printed=printed,
        reading=reading,
        is_extra=is_extra,
    )


BY_RULE = {
    "best_test": "Trained, best test round",
    "last": "Trained, last round",
    "client_best_val": "Trained, each client's best round",
}
"""Rule -> title of its measure, for all rules except the primary reading's rule."""

MEASURES = (
    _client_measure(Reading("trained", "best_val"), "Trained, best validation round"),
    _client_measure(Reading("received", "best_val"), "Received", "stage=received"),
    *(
        _client_measure(Reading("trained", rule), title, f"rule={rule}", is_extra=True)
        for rule, title in BY_RULE.items()
    ),
    *(
        Measure(
            f"by_round_{stage}",
            stage.capitalize(),
            f"test accuracy in percent of the {stage} model at the round that the line names",
            _by_round,
            metric="accuracy_by_round",
            printed=f"stage={stage}",
            reading=Reading(stage, "last"),
        )
        for stage in ("trained", "received")
    ),
)
"""Measures of this study, in addition to the measures of all studies. Points name the client or the round."""
