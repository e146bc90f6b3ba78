"""The places of all tables, and their members: which runs stand in which line, column and point."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from bench.frames.stored_runs import TUNED, WHERE, SettingsOf, cells_in_order, rows_of, with_text_as_objects
from bench.grids.experiment import Line
from bench.studies.experiment import Experiment, Plans
from bench.studies.settings import Column, Settings, difference_text
from bench.studies.study import Study

Found = dict[tuple[Column, str], dict[str, str]]
"""Column and method -> the cells of the runs that a line of a main table may show, by their setting."""

Usual = dict[tuple[Column, str], tuple[str, tuple[int, ...]]]
"""Column and method -> the cell of the usual settings, and the seeds that are planned."""

Place = tuple[dict[str, Any], Settings]
"""Columns of a place, and the settings of its runs."""


def places_frame(
    studies: Mapping[str, Study],
    plans: Plans,
    runs: pd.DataFrame,
    usual: pd.DataFrame,
    settings_of: SettingsOf,
) -> tuple[pd.DataFrame, dict[int, Settings]]:
    """The places of all tables, and by place the settings of the runs that stand there or are planned.

    place                    number of the place
    study, document, main    the table; whether it is a main table
    dataset, scenario, clients, column_number
    line, method, reads      title of the line, its method, the method whose runs it shows
    line_object, row         the line, and the study's line of its method, which knows its published name
    line_number              number of the line in the table
    usual                    the line is the study's, not found in the database under other settings
    is_baseline              the line of an experiment is the baseline, in no settings of its own
    point_object, point      the point and its label
    inner                    number of the place among those that an experiment plans
    setting                  what the runs have other than the method's usual settings
    cell                     cell of the runs of a main table; "": no runs, or an experiment
    hashes, seeds            hashes of the specs that an experiment plans; the seeds that are planned
    is_planned               a grid plans runs
    """
    found: Found = defaultdict(dict)
    listed = set(runs.loc[runs["listed"], "cell"])
    setting_of = dict(zip(runs["cell"], runs["setting"], strict=True))
    for row in rows_of(cells_in_order(runs, settings_of)):
        cells = found[Column(row.dataset, row.scenario, row.clients), row.method]
        if row.cell in listed:
            cells[setting_of[row.cell]] = row.cell
    planned: Usual = {
        (Column(row.dataset, row.scenario, row.clients), row.method): (row.cell, row.seeds)
        for row in rows_of(usual)
    }
    rows, settings = [], []
    for name, experiments in plans.items():
        study = studies[name]
        for experiment in experiments:
            table = {"study": name, "document": experiment.name, "main": experiment.main}
            if experiment.finds:
                places = _found_places(study, experiment, found, planned, settings_of)
            else:
                places = _planned_places(study, experiment)
            for place, place_settings in places:
                line = place["line_object"]
                names = {"line": study.line_title(line), "method": line.method, "reads": line.runs}
                rows.append({**table, **place, **names, "row": study.row(line), "usual": not line.setting})
                settings.append(place_settings)
    frame = pd.DataFrame(rows)
    frame["point"] = [point.label for point in frame["point_object"]]
    return with_text_as_objects(frame).rename_axis("place").reset_index(), dict(enumerate(settings))


def _planned_places(study: Study, experiment: Experiment) -> Iterator[Place]:
    """The places of an experiment: those for which its grid plans runs."""
    for inner, ((column, line, point), planned) in enumerate(experiment.runs.items()):
        place = {
            **asdict(column),
            "column_number": experiment.columns.index(column),
            "line_number": experiment.all_lines.index(line),
            "line_object": line,
            "is_baseline": line.method == study.baseline and not line.settings,
            "point_object": point,
            "inner": inner,
            "setting": difference_text({**line.settings, **point.settings}, {}),
            "cell": "",
            "hashes": planned.hashes,
            "seeds": planned.seeds,
            "is_planned": True,
        }
        yield place, planned.settings


def _found_places(
    study: Study, experiment: Experiment, found: Found, planned: Usual, settings_of: SettingsOf
) -> Iterator[Place]:
    """The places of a main table: every line in every column. Beside the study's lines there are those of
    other methods that are stored or planned here, and those of other settings that were run.
    """
    columns = experiment.columns
    stored = {method for column, method in (*found, *planned) if column in columns}
    others = stored - {line.method for line in study.lines}
    own = [*study.lines, *(Line(name, study.title_of(name), is_own=False) for name in sorted(others))]
    lines = []
    for line in own:
        settings = {setting for column in columns for setting in found.get((column, line.runs), ())}
        lines += [replace(line, setting=setting) if setting else line for setting in sorted({"", *settings})]
    for column_number, column in enumerate(columns):
        for line_number, line in enumerate(lines):
            cell = found.get((column, line.runs), {}).get(line.setting, "")
            is_usual = not line.setting and (column, line.runs) in planned
            usual_cell, seeds = planned[column, line.runs] if is_usual else ("", ())
            place = {
                **asdict(column),
                "column_number": column_number,
                "line_number": line_number,
                "line_object": line,
                "is_baseline": False,
                "point_object": experiment.points[0],
                "inner": 0,
                "setting": line.setting,
                "cell": cell,
                "hashes": (),
                "seeds": seeds,
                "is_planned": is_usual,
            }
            yield place, settings_of.get(cell or usual_cell, {})


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
    runs_by_place = defaultdict(list)
    read = ["place", "seed", "state", "reason", "tuning", "bundle", "bundle_state", "origin"]
    for run in rows_of(members[read]):
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
        origin = "; ".join(sorted(set(map(_origin, runs))))
        is_tuned = any(run.tuning == TUNED for run in runs[:1])
        rows.append((place, *counted, done_seeds, "; ".join(missing), state, failure, origin, is_tuned))
    names = ["place", "runs", "lost", "planned", "done_seeds", "missing", "state", "state_reason"]
    frame = with_text_as_objects(pd.DataFrame(rows, columns=[*names, "origin", "tuned"]))
    done = members[members["is_done"]]
    costs = pd.DataFrame(
        {
            "seconds": done.groupby("place")["seconds_total"].median(),
            "megabytes": (done["bytes_up"] + done["bytes_down"]).groupby(done["place"]).mean() / 1e6,
            "peak_mib": done.groupby("place")["peak_memory"].mean() / 2**20,
        }
    )
    return frame.join(costs, on="place")


def _origin(run: Any) -> str:
    """Whose a run is."""
    if run.bundle:
        return f"bundle {run.bundle}: {run.bundle_state}"
    return f"shipped: {run.origin}" if run.origin else "own"


def joined(first: pd.Series[str], second: pd.Series[str]) -> pd.Series[str]:
    """Two columns of texts with ``; `` between those that are not empty."""
    return first.where(second == "", second.where(first == "", first + "; " + second))
