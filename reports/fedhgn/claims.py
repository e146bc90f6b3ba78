"""What FedHGN's text says about its results."""

from __future__ import annotations

import math

from bench.grids.grid import ColumnMatch
from bench.studies.claims import Claim, Claims

from .measures import MEASURES

LOCAL, TRIMMED, COMPLETED = ("Local HGNN",), ("FedHGN w/o HC, released",), ("FedHGN with HC",)
GLOBAL, ONE_CLIENT = ("Global HGNN",), 1
FEDERATIONS = ColumnMatch(clients=(3, 6, 9))
TABLE2, TABLE3 = ("table2",), ("table3",)
MEASURES_BY_NAME = {measure.name: measure for measure in MEASURES}

MARGIN = 2.0
"""Points off at which an average counts as the stated one, as for a verdict."""


def _average(text: str, first: tuple[str, ...], second: tuple[str, ...], difference: float) -> Claim:
    """A difference that the text states as a mean over Table 2."""
    return Claim(
        f"{text} by {abs(difference)} points on average, within {MARGIN:.0f}",
        first,
        second,
        TABLE2,
        source="text on Table 2",
        range=(difference - MARGIN, difference + MARGIN),
        average=True,
        only=FEDERATIONS,
        second_clients=ONE_CLIENT if second == GLOBAL else None,
    )


CLAIMS = (
    Claims(
        "claims",
        "Claims of the text",
        (
            _average("FedHGN without completion is above Local HGNN", TRIMMED, LOCAL, 5.9),
            _average("Completion adds to FedHGN", COMPLETED, TRIMMED, 6.8),
            _average("FedHGN without completion is below Global HGNN", TRIMMED, GLOBAL, -10.3),
            _average("With completion it is below Global HGNN", COMPLETED, GLOBAL, -3.5),
            Claim(
                "FedHGN with completion is above all other federated and local methods",
                COMPLETED,
                (*LOCAL, "Local HGNN with HC", *TRIMMED),
                TABLE2,
                source="Table 2",
                each=True,
                only=FEDERATIONS,
            ),
            Claim("FedHGN without completion is above Local HGNN", TRIMMED, LOCAL, TABLE2, source="Table 2"),
            Claim("Completion helps Local HGNN", ("Local HGNN with HC",), LOCAL, TABLE2, source="Table 2"),
            Claim(
                "Completion helps where single nodes are kept, too, as the paper words its trimming",
                COMPLETED,
                ("FedHGN w/o HC, single nodes kept",),
                TABLE2,
                source="text",
                only=FEDERATIONS,
            ),
            Claim(
                "FedHGN with completion is above all methods for simple graphs",
                COMPLETED,
                (
                    "FedSage",
                    "FedGCN (0-hop)",
                    *TRIMMED,
                    "FedSage+ stand-in",
                    "FedGCN (2-hop)",
                    "FedCog",
                ),
                TABLE3,
                source="Table 3",
                each=True,
            ),
            Claim(
                "Without completion FedHGN has no advantage over FedGCN (0-hop) on CiteSeer",
                ("FedGCN (0-hop)",),
                TRIMMED,
                TABLE3,
                source="text on Table 3",
                only=ColumnMatch(dataset=("citeseer-whole",)),
            ),
            Claim(
                "With completion FedHGN ends above FedHGN without it and Local HGNN",
                COMPLETED,
                (*TRIMMED, *LOCAL),
                ("convergence",),
                source="Fig. 3",
                each=True,
            ),
            Claim(
                "Global HGNN is its upper bound",
                COMPLETED,
                GLOBAL,
                TABLE2,
                source="Fig. 3",
                range=(-math.inf, 0.0),
                only=ColumnMatch(dataset=("coraca",), clients=(6,)),
                second_clients=ONE_CLIENT,
            ),
            *(
                Claim(
                    f"{statement}: it can compute the features of at most 1 percent of the border nodes",
                    ("HC, every part sent",),
                    (),
                    ("privacy",),
                    source="text",
                    range=(-math.inf, 1.0),
                    measure=MEASURES_BY_NAME[name],
                )
                for statement, name in (
                    ("The server learns no node's features", "recoverable"),
                    ("No other client learns them", "recoverable_by_peers"),
                )
            ),
        ),
        (
            "The claims are those of the paper's text in our words. Its averages do not follow from its own "
            "Table 2: 'Published' are the differences that do.",
        ),
    ),
)
