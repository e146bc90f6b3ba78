"""The members of places: the runs that stand there, with the runs beside which they are set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from bench.frames.stored_runs import TUNED, WHERE
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

    runs, lost             how many there are, and how many of them have no numbers
    done_seeds             the seeds that have numbers
    state, state_reason    "": some have numbers; ``not_run``; else the most frequent state (equal ones by
                           name), with the first run that ended so
    missing                which of the planned seeds have no numbers
    """
    lost = members[~members["is_done"]]
    frequent = lost.groupby(["place", "state"]).size().rename("number").reset_index()
    frequent = frequent.sort_values(["number", "state"], ascending=[False, True]).drop_duplicates("place")
    first = lost.drop_duplicates(["place", "state"]).merge(frequent, on=["place", "state"]).set_index("place")
    lines = first["reason"].map(lambda reason: next(iter(str(reason).strip().splitlines()), ""))
    first["failure"] = "seed " + first["seed"].astype(str) + lines.where(lines == "", ": " + lines)

    found = places[["place", "seeds"]].set_index("place")
    found["runs"] = members.groupby("place").size().reindex(found.index, fill_value=0)
    found["lost"] = lost.groupby("place").size().reindex(found.index, fill_value=0)
    found["planned"] = found["seeds"].map(len)
    seeds = members.groupby("place")["seed"].agg(set).reindex(found.index)
    done_seeds = members[members["is_done"]].groupby("place")["seed"].agg(tuple).reindex(found.index)
    found["done_seeds"] = [seeds if isinstance(seeds, tuple) else () for seeds in done_seeds]
    was_run = [
        len(run.intersection(seeds)) if isinstance(run, set) else 0
        for run, seeds in zip(seeds, found["seeds"], strict=True)
    ]
    found["was_run"] = was_run
    first = first.reindex(found.index)
    unrun = found["was_run"].astype(str) + " of " + found["planned"].astype(str) + " planned seeds"
    failed = (
        found["lost"].astype(str)
        + " of "
        + found["runs"].astype(str)
        + " runs without numbers ("
        + first["state"].astype(str)
        + ", "
        + first["failure"].astype(str)
        + ")"
    )
    found["missing"] = joined(
        unrun.where(found["was_run"] < found["planned"], ""), failed.where(found["lost"] > 0, "")
    )
    has_numbers = found["runs"] > found["lost"]
    found["state"] = first["state"].fillna("not_run").mask(has_numbers, "")
    found["state_reason"] = first["failure"].fillna("").mask(has_numbers, "")
    return found.reset_index().drop(columns=["seeds", "was_run"])


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
