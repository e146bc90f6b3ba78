"""The members of places: the runs that stand there, with the runs beside which they are set."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import pandas as pd

from bench.frames.stored_runs import TUNED, WHERE, rows_of, with_text_as_objects
from bench.studies.study import Study


def members_frame(studies: Mapping[str, Study], places: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of every place, by place and seed: the columns of the runs frame, and

    place, point   the place, the label of its point
    average        how the study averages clients
    is_done        the run has numbers
    baseline       run of the baseline with the same seed on the same clients: at the same point of the same
                   experiment, else the usual one; missing without one
    control        run of the method that learns nothing on the same clients; missing for newcomers
    """
    facts = ["place", "study", "document", "point", "point_object", "is_baseline"]
    hashes = places[[*facts, "hashes"]].explode("hashes").rename(columns={"hashes": "spec_hash"})
    planned = hashes.dropna(subset="spec_hash").merge(runs.reset_index(names="row"), on="spec_hash")
    counted = runs[runs["counted"] & ~runs["special"]].reset_index(names="row")
    found = places[places["cell"] != ""][[*facts, "cell"]].merge(counted, on="cell")
    members = pd.concat([planned, found]).sort_values(["place", "row"], ignore_index=True)
    members["is_done"] = members["state"] == "done"
    members["average"] = members["study"].map({name: study.average for name, study in studies.items()})
    usual = counted[(counted["setting"] == "") & (counted["state"] == "done")]
    members["baseline"] = _baseline(studies, members, usual)
    members["control"] = _control(studies, members, runs)
    return members


def _baseline(studies: Mapping[str, Study], members: pd.DataFrame, usual: pd.DataFrame) -> pd.Series[Any]:
    same_point = ["study", "document", *WHERE, "point_object"]
    at_point = members[members["is_baseline"]]
    first = at_point.drop_duplicates(same_point)[[*same_point, "place"]].rename(columns={"place": "base"})
    has_point = members[same_point].merge(first, how="left")["base"]
    runs_at_point = at_point[at_point["is_done"]].rename(columns={"place": "base", "run": "beside"})
    same_clients = ["seed", "partition_hash"]
    asked = members[["study", *WHERE, *same_clients]].assign(base=has_point.fillna(-1))
    beside = asked.merge(runs_at_point[["base", *same_clients, "beside"]], how="left")["beside"]
    asked["method"] = asked["study"].map({name: study.baseline for name, study in studies.items()})
    usual_runs = usual[[*WHERE, "method", *same_clients, "run"]].rename(columns={"run": "beside"})
    usual_beside = asked.merge(usual_runs, how="left")["beside"]
    return beside.where(has_point.notna(), usual_beside)


def _control(studies: Mapping[str, Study], members: pd.DataFrame, runs: pd.DataFrame) -> pd.Series[Any]:
    same_clients = [*WHERE, "method", "partition_hash"]
    known = runs[(runs["state"] == "done") & ~runs["special"]].drop_duplicates(same_clients)
    names = members["study"].map({name: study.control for name, study in studies.items()})
    asked = members[[*WHERE, "partition_hash"]].assign(method=names)
    beside = asked.merge(known[[*same_clients, "run"]].rename(columns={"run": "beside"}), how="left")[
        "beside"
    ]
    return beside.mask(members["newcomers"])


def states(places: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
    """What became of the runs of every place.

    runs, lost, planned    how many runs there are, how many of them have no numbers, how many are planned
    done_seeds             the seeds that have numbers
    state, state_reason    "": some have numbers; ``not_run``; else the most frequent state (equal ones by
                           name), with the first run that ended so
    missing                which of the planned seeds have no numbers
    """
    runs_by_place = defaultdict(list)
    for run in rows_of(members[["place", "seed", "state", "reason"]]):
        runs_by_place[run.place].append(run)
    rows = []
    for place, planned in zip(places["place"], places["seeds"], strict=True):
        runs = runs_by_place[place]
        lost = [run for run in runs if run.state != "done"]
        done_seeds = tuple(run.seed for run in runs if run.state == "done")
        run_seeds = {run.seed for run in runs}.intersection(planned)
        missing = []
        if len(run_seeds) < len(planned):
            missing.append(f"{len(run_seeds)} of {len(planned)} planned seeds")
        state, failure = "not_run", ""
        if lost:
            counts = Counter(run.state for run in lost)
            state = min(counts, key=lambda name: (-counts[name], name))
            first = next(run for run in lost if run.state == state)
            failure = ": ".join([f"seed {first.seed}", *str(first.reason).strip().splitlines()[:1]])
            missing.append(f"{len(lost)} of {len(runs)} runs without numbers ({state}, {failure})")
        if done_seeds:
            state, failure = "", ""
        counted = len(runs), len(lost), len(planned)
        rows.append((place, *counted, done_seeds, "; ".join(missing), state, failure))
    names = ["place", "runs", "lost", "planned", "done_seeds", "missing", "state", "state_reason"]
    return with_text_as_objects(pd.DataFrame(rows, columns=names))


def joined(first: pd.Series[str], second: pd.Series[str]) -> pd.Series[str]:
    """Two columns of texts with ``; `` between those that are not empty."""
    return first.where(second == "", second.where(first == "", first + "; " + second))


def costs(members: pd.DataFrame) -> pd.DataFrame:
    """What the runs of every place cost, whose they are, and whether a search found their settings.

    seconds (median), megabytes, peak_mib (means), origin, tuned
    """
    bundle = "bundle " + members["bundle"] + ": " + members["bundle_state"]
    shipped = ("shipped: " + members["origin"]).where(members["origin"] != "", "own")
    names = bundle.where(members["bundle"] != "", shipped)
    origins = names.groupby(members["place"]).agg(lambda texts: "; ".join(sorted(set(texts))))
    done = members[members["is_done"]]
    done = done.assign(bytes=done["bytes_up"] + done["bytes_down"])
    by_place = done.groupby("place").agg(
        seconds=("seconds_total", "median"), megabytes=("bytes", "mean"), peak_mib=("peak_memory", "mean")
    )
    by_place["megabytes"] /= 1e6
    by_place["peak_mib"] /= 2**20
    tuned = (members["tuning"] == TUNED).groupby(members["place"]).first()
    return pd.DataFrame({"origin": origins, "tuned": tuned}).join(by_place).reset_index()
