"""The places of all tables, and their members: which runs stand in which line, column and point."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, astuple, replace
from itertools import product

import pandas as pd

from bench.frames.stored_runs import WHERE, SettingsOf, UsualRuns, rows_of
from bench.grids.grid import Line
from bench.store.tables import plain_texts
from bench.studies.experiment import Experiment, Place, PlannedCell, Plans
from bench.studies.settings import Settings, difference_text
from bench.studies.study import Study

Found = dict[tuple[str, str, int, str, str], str]
"""Dataset, scenario, clients, method and setting -> the cell that a main table may show."""


def places_frame(
    studies: Mapping[str, Study], plans: Plans, runs: pd.DataFrame, usual: UsualRuns, settings_of: SettingsOf
) -> tuple[pd.DataFrame, dict[int, Settings]]:
    """Return the places of all tables, without the columns of ``states``; and the settings of their stored or
    planned runs, by place.
    """
    found: Found = {
        (run.dataset, run.scenario, run.clients, run.method, run.setting): run.cell
        for run in rows_of(runs[runs["listed"]].drop_duplicates("cell"))
    }
    rows, settings = [], []
    for study, experiment in ((studies[name], one) for name in plans for one in plans[name]):
        lines = list(experiment.lines)
        places = experiment.runs
        if experiment.main:
            lines, places = _found_places(study, experiment, found, usual, settings_of)
        for inner, ((column, line, point), planned) in enumerate(places.items()):
            place = {
                "study": study.name,
                "document": experiment.name,
                "main": experiment.main,
                **asdict(column),
                "column_number": experiment.columns.index(column),
                "line": study.line_title(line),
                "method": line.method,
                "reads": line.runs,
                "stage": line.stage,
                "line_object": line,
                "row": study.row(line),
                "line_number": lines.index(line),
                "usual": not line.setting,
                "is_baseline": line.method == study.baseline and not (line.settings or line.setting),
                "point_object": point,
                "point": point.label,
                "inner": inner,
                "setting": line.setting or difference_text({**line.settings, **point.settings}, {}),
                "cell": planned.cell,
                "hashes": planned.hashes,
                "seeds": planned.seeds,
            }
            rows.append(place)
            settings.append(planned.settings)
    return plain_texts(pd.DataFrame(rows)).rename_axis("place").reset_index(), dict(enumerate(settings))


def _found_places(
    study: Study, experiment: Experiment, found: Found, usual: UsualRuns, settings_of: SettingsOf
) -> tuple[list[Line], dict[Place, PlannedCell]]:
    """Return the lines of a main table, and its places with their stored cell, its settings, and the seeds
    that are planned in usual settings.

    The study's lines come first. Lines are added for other methods that are stored or planned here, and for
    other settings that were run.
    """
    columns = [astuple(column) for column in experiment.columns]
    here = [(method, setting) for *column, method, setting in found if tuple(column) in columns]
    methods = {*dict(here), *(method for *column, method in usual if tuple(column) in columns)}
    others = sorted(methods - {line.method for line in study.lines})
    lines = []
    for line in (*study.lines, *(Line(name, study.title_of(name), is_own=False) for name in others)):
        found_settings = {setting for method, setting in here if method == line.runs}
        lines += [replace(line, setting=setting) for setting in sorted({"", *found_settings})]
    places = {}
    for column, line in product(experiment.columns, lines):
        where = (*astuple(column), line.runs)
        cell = found.get((*where, line.setting), "")
        planned = PlannedCell({}) if line.setting else usual.get(where, PlannedCell({}))
        settings = settings_of[cell] if cell else planned.settings
        places[column, line, experiment.points[0]] = planned._replace(cell=cell, settings=settings)
    return lines, places


def members_frame(studies: Mapping[str, Study], places: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of every place, sorted by place and seed."""
    runs = runs.reset_index(names="row")
    counted = runs[runs["counted"] & ~runs["special"]]
    facts = places[["place", "study", "document", "point", "point_object", "is_baseline", "cell", "hashes"]]
    planned = facts.drop(columns="cell").explode("hashes").merge(runs, left_on="hashes", right_on="spec_hash")
    found = facts[facts["cell"] != ""].merge(counted, on="cell")
    members = pd.concat([planned, found]).sort_values(["place", "row"], ignore_index=True)
    members["is_done"] = members["state"] == "done"
    members["average"] = members["study"].map({name: study.average for name, study in studies.items()})
    baselines = members["study"].map({name: study.baseline for name, study in studies.items()})
    controls = members["study"].map({name: study.control for name, study in studies.items()})

    # Take the baseline at the same point. If the table has none there, take the one in usual settings.
    same_point, same_clients = ["study", "document", *WHERE, "point_object"], ["seed", "partition_hash"]
    at_point = members[members["is_baseline"]]
    first_place = at_point.drop_duplicates(same_point)[[*same_point, "place"]]
    place = members[same_point].merge(first_place, how="left")["place"]
    runs_at_point = at_point.loc[at_point["is_done"], ["place", *same_clients, "run"]]
    beside = members[same_clients].assign(place=place.fillna(-1)).merge(runs_at_point, how="left")["run"]
    usual = counted[(counted["setting"] == "") & (counted["state"] == "done")]
    asked = members[[*WHERE, *same_clients]].assign(method=baselines)
    usual_beside = asked.merge(usual[[*WHERE, "method", *same_clients, "run"]], how="left")["run"]
    members["baseline"] = beside.where(place.notna(), usual_beside)

    on_clients = [*WHERE, "method", "partition_hash"]
    known = runs[(runs["state"] == "done") & ~runs["special"]].drop_duplicates(on_clients)
    asked = members[[*WHERE, "partition_hash"]].assign(method=controls)
    control = asked.merge(known[[*on_clients, "run"]], how="left")["run"]
    members["control"] = control.mask(members["newcomers"])
    return members


def states(places: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the places frame that come from runs: counts, states and costs of every place."""
    runs_by_place = defaultdict(list)
    whose = ("shipped: " + members["origin"]).mask(members["origin"] == "", "own")
    imported = "bundle " + members["bundle"] + ": " + members["bundle_state"]
    read = members[["place", "seed", "state", "reason", "tuned"]]
    for run in rows_of(read.assign(whose=imported.where(members["bundle"] != "", whose))):
        runs_by_place[run.place].append(run)
    rows = []
    for place, planned in zip(places["place"], places["seeds"], strict=True):
        runs = runs_by_place[place]
        lost = [run for run in runs if run.state != "done"]
        row = {
            "runs": len(runs),
            "lost": len(lost),
            "planned": len(planned),
            "done_seeds": tuple(run.seed for run in runs if run.state == "done"),
            "state": "" if len(lost) < len(runs) else "not_run",
            "state_reason": "",
            "origin": "; ".join(sorted({run.whose for run in runs})),
            "tuned": any(run.tuned for run in runs),
        }
        stored = {run.seed for run in runs}.intersection(planned)
        missing = [f"{len(stored)} of {len(planned)} planned seeds"] if len(stored) < len(planned) else []
        if lost:
            ((state, _),) = Counter(sorted(run.state for run in lost)).most_common(1)
            first = next(run for run in lost if run.state == state)
            reason = ": ".join([f"seed {first.seed}", *first.reason.strip().splitlines()[:1]])
            missing.append(f"{len(lost)} of {len(runs)} runs without numbers ({state}, {reason})")
            if row["state"]:
                row |= {"state": state, "state_reason": reason}
        rows.append({**row, "missing": "; ".join(missing)})
    frame = pd.DataFrame(rows, places["place"])
    done = members[members["is_done"]]
    costs = done.assign(traffic=done["bytes_up"] + done["bytes_down"]).groupby("place")
    frame["seconds"] = costs["seconds_total"].median()
    frame["megabytes"] = costs["traffic"].mean() / 1e6
    frame["peak_mib"] = costs["peak_memory"].mean() / 2**20
    return frame
