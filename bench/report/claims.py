"""What a paper says in words, or a study registers before its runs, as differences that runs can show."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.grids.experiment import Only
from bench.report.measures import Measure


@dataclass(frozen=True, eq=False)
class Claim:
    """``first`` is above ``second``, in the columns ``only``, at every place of the ``tables``.

    Lines go by their titles; of several the mean is compared or, with ``each``, the lowest of the first
    with the highest of the second. A place is a column at a point; with ``points`` a column alone, where the
    first lines are read at the one point and the second at the other. ``most`` asks for more than half of the
    places. Without a ``measure`` accuracies are compared as the study reads them, paired by client and seed;
    else one number a run, paired by seed. With ``exact`` these have no spread, and the claim is that the
    first is not below the second.

    ``tables`` and ``reduced`` are names of experiments; the latter are read where none of the former was run.
    ``source`` says where the paper has it.
    """

    text: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    tables: tuple[str, ...]
    reduced: tuple[str, ...] = ()
    source: str = ""
    each: bool = False
    most: bool = False
    exact: bool = False
    only: Only = field(default_factory=Only)
    points: tuple[str, str] | None = None
    measure: Measure | None = None


@dataclass(frozen=True, eq=False)
class Claims:
    """A list of claims with a document of its own."""

    name: str
    title: str
    claims: tuple[Claim, ...]
    remarks: tuple[str, ...] = ()
