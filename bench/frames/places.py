"""The places of all tables, and their members: which runs stand in which line, column and point."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, astuple, replace
from itertools import product
from typing import Any

import pandas as pd

from bench.frames.stored_runs import (
    TUNED,
    WHERE,
    SettingsOf,
    Usual,
    UsualRuns,
    cells_in_order,
    rows_of,
    with_text_as_objects,
)
from bench.grids.experiment import Line
from bench.studies.experiment import Experiment, Place, PlannedCell, Plans
from bench.studies.settings import Settings, difference_text
from bench.studies.study import Study

Found = dict[tuple[str, str, int, str], dict[str, str]]
"""Dataset, scenario, clients and method -> the cells that a main table may show, by their setting."""

UNPLANNED = Usual("", {}, (), per_seed=False)


def places_frame(
    studies: Mapping[str, Study],
    plans: Plans,
    runs: pd.DataFrame,
    usual: UsualRuns,
    settings_of: SettingsOf,
) -> tuple[pd.DataFrame, dict[int, Settings]]:
    """The places of all tables, and by place the settings of the runs that stand there or are planned.

    place                    number of the place
    study, document, main    the table; whether it is a main table
    dataset, scenario, clients, column_number
    line, method, reads      title of the line, its method, the method whose runs it shows
    stage                    the only stage at which the line is read; "": every measure's own
    line_object, row         the line, and the study's line of its method, which knows its published name
    line_number              number of the line in the table
    usual                    the line is the study's, not found in the database under other settings
    is_baseline              the line is the baseline's, in no settings of its own
    point_object, point      the point and its label
    inner                    number of the place in its table
    setting                  what the runs have other than the method's usual settings
    cell                     cell of the runs of a main table; "": no runs, or an experiment
    hashes, seeds            hashes of the specs that an experiment plans; the seeds that are planned
    """
    found: Found = defaultdict(dict)
    listed = runs[runs["listed"]].drop_duplicates("cell").set_index("cell")["setting"].to_dict()
    for row in rows_of(cells_in_order(runs, settings_of)):
        cells = found[row.dataset, row.scenario, row.clients, row.method]
        if row.cell in listed:
            cells[listed[row.cell]] = row.cell
    rows, settings = [], []
    for name, experiments in plans.items():
        study = studies[name]
        for experiment in experiments:
            lines = list(experiment.lines)
            places = {key: ("", cell) for key, cell in experiment.runs.items()}
            if experiment.main:
                lines, places = _found_places(study, experiment, found, usual, settings_of)
            for inner, ((column, line, point), (cell, planned_cell)) in enumerate(places.items()):
                place = {
                    "study": name,
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
                    "cell": cell,
                    "hashes": planned_cell.hashes,
                    "seeds": planned_cell.seeds,
                }
                rows.append(place)
                settings.append(planned_cell.settings)
    frame = with_text_as_objects(pd.DataFrame(rows))
    return frame.rename_axis("place").reset_index(), dict(enumerate(settings))


def _found_places(
    study: Study, experiment: Experiment, found: Found, usual: UsualRuns, settings_of: SettingsOf
) -> tuple[list[Line], dict[Place, tuple[str, PlannedCell]]]:
    """The lines of a main table, and its places: the cell that is found there, its settings, and the seeds
    that are planned in the usual ones.

    Beside the study's lines there are those of other methods that are stored or planned here, and those of
    other settings that were run.
    """
    columns = [astuple(column) for column in experiment.columns]
    stored = {method for *column, method in (*found, *usual) if tuple(column) in columns}
    others = sorted(stored - {line.method for line in study.lines})
    lines = []
    for line in (*study.lines, *(Line(name, study.title_of(name), is_own=False) for name in others)):
        settings = {setting for column in columns for setting in found.get((*column, line.runs), ())}
        lines += [replace(line, setting=setting) for setting in sorted({"", *settings})]
    places = {}
    for column, line in product(experiment.columns, lines):
        where = (*astuple(column), line.runs)
        cell = found.get(where, {}).get(line.setting, "")
        one = UNPLANNED if line.setting else usual.get(where, UNPLANNED)
        of_runs = PlannedCell(settings_of[cell] if cell else one.settings, one.seeds, ())
        places[column, line, experiment.points[0]] = cell, of_runs
    return lines, places


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
    same_point, same_clients = ["study", "document", *WHERE, "point_object"], ["seed", "partition_hash"]
    at_point = members[members["is_baseline"]]
    first_place = at_point.drop_duplicates(same_point)[[*same_point, "place"]]
    place = members[same_point].merge(first_place, how="left")["place"]
    runs_at_point = at_point.loc[at_point["is_done"], ["place", *same_clients, "run"]]
    beside = members[same_clients].assign(place=place.fillna(-1)).merge(runs_at_point, how="left")["run"]
    method = members["study"].map({name: study.baseline for name, study in studies.items()})
    asked = members[[*WHERE, *same_clients]].assign(method=method)
    usual_beside = asked.merge(usual[[*WHERE, "method", *same_clients, "run"]], how="left")["run"]
    return beside.where(place.notna(), usual_beside)


def _control(studies: Mapping[str, Study], members: pd.DataFrame, runs: pd.DataFrame) -> pd.Series[Any]:
    same_clients = [*WHERE, "method", "partition_hash"]
    known = runs[(runs["state"] == "done") & ~runs["special"]].drop_duplicates(same_clients)
    method = members["study"].map({name: study.control for name, study in studies.items()})
    asked = members[[*WHERE, "partition_hash"]].assign(method=method)
    return asked.merge(known[[*same_clients, "run"]], how="left")["run"].mask(members["newcomers"])


def states(places: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
    """What became of the runs of every place, and what they cost.

    runs, lost, planned    how many runs there are, how many of them have no numbers, how many are planned
    done_seeds             the seeds that have numbers
    state, state_reason    "": some have numbers; ``not_run``; else the most frequent state (equal ones by
                           name), with the first run that ended so
    missing                which of the planned seeds have no numbers
    origin, tuned          whose the runs are; whether a search found their settings
    seconds (median), megabytes, peak_mib (means)
    """
    read = ["place", "seed", "state", "reason", "tuning", "bundle", "bundle_state", "origin"]
    runs_by_place = defaultdict(list)
    for run in rows_of(members[read]):
        runs_by_place[run.place].append(run)
    rows = []
    for place, planned in zip(places["place"], places["seeds"], strict=True):
        runs = runs_by_place[place]
        done_seeds = tuple(run.seed for run in runs if run.state == "done")
        lost = [run for run in runs if run.state != "done"]
        planned_runs = {run.seed for run in runs}.intersection(planned)
        state, failure, missing = "" if done_seeds else "not_run", "", []
        if len(planned_runs) < len(planned):
            missing.append(f"{len(planned_runs)} of {len(planned)} planned seeds")
        if lost:
            ((lost_state, _),) = Counter(sorted(run.state for run in lost)).most_common(1)
            first = next(run for run in lost if run.state == lost_state)
            reason = ": ".join([f"seed {first.seed}", *first.reason.strip().splitlines()[:1]])
            missing.append(f"{len(lost)} of {len(runs)} runs without numbers ({lost_state}, {reason})")
            if not done_seeds:
                state, failure = lost_state, reason
        counts = len(runs), len(lost), len(planned)
        origin = "; ".join(sorted(set(map(_origin, runs))))
        is_tuned = bool(runs) and runs[0].tuning == TUNED
        rows.append((place, *counts, done_seeds, "; ".join(missing), state, failure, origin, is_tuned))
    names = ["place", "runs", "lost", "planned", "done_seeds", "missing", "state", "state_reason"]
    frame = with_text_as_objects(pd.DataFrame(rows, columns=[*names, "origin", "tuned"]))
    done = members[members["is_done"]]
    costs = done.assign(traffic=done["bytes_up"] + done["bytes_down"]).groupby("place")
    return frame.assign(
        seconds=frame["place"].map(costs["seconds_total"].median()),
        megabytes=frame["place"].map(costs["traffic"].mean()) / 1e6,
        peak_mib=frame["place"].map(costs["peak_memory"].mean()) / 2**20,
    )


def _origin(run: Any) -> str:
    """Whose a run is."""
    if run.bundle:
        return f"bundle {run.bundle}: {run.bundle_state}"
    return f"shipped: {run.origin}" if run.origin else "own"
