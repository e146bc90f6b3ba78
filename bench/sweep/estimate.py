"""How long runs will take, from how long like ones took."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from statistics import median

from bench.spec import RunSpec
from bench.store.queries import Timing

Kind = tuple[str, str, int, str]


class Estimator:
    """Seconds of a run: the median over stored runs of the same data set, scenario, clients and
    method of their seconds per local epoch, times the run's rounds and local epochs.
    """

    def __init__(self, history: Iterable[Timing]) -> None:
        rates: defaultdict[Kind, list[float]] = defaultdict(list)
        for timing in history:
            protocol = json.loads(timing.spec)["protocol"]
            steps = protocol["rounds"] * protocol["local_epochs"]
            kind = (timing.dataset, timing.scenario, timing.clients, timing.method)
            rates[kind].append(timing.seconds / steps)
        self._rates = {kind: median(values) for kind, values in rates.items()}

    def seconds(self, spec: RunSpec) -> float | None:
        """Expected seconds; None where no like run is stored."""
        rate = self._rates.get((spec.dataset, spec.scenario, spec.clients, spec.method))
        return None if rate is None else rate * spec.protocol.rounds * spec.protocol.local_epochs
