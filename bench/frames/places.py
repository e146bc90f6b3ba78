"""The places of all tables: which line stands in which column at which point, and with which runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace

import pandas as pd

from bench.frames.stored_runs import WHERE, SettingsOf, with_text_as_objects
from bench.grids.experiment import Line
from bench.studies.experiment import Experiment, Plans
from bench.studies.settings import Settings, difference_text
from bench.studies.study import Study


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
    found                    the table shows whatever runs there are
    dataset, scenario, clients, column_number
    line, method, reads      title of the line, its method, the method whose runs it shows
    line_object, row         the line, and the study's line of its method, which knows its published name
    line_number, usual, is_baseline   as in ``_lines_frame``
    point_object, point      the point and its label
    inner                    number of the place among those that an experiment plans
    setting                  what the runs have other than the method's usual settings
    cell                     cell of the runs of a main table; "": no runs, or an experiment
    hashes, seeds            hashes of the specs that an experiment plans; the seeds that are planned
    is_planned               a grid plans runs
    """
    tables, settings = [], []
    for name, experiments in plans.items():
        for experiment in experiments:
            if experiment.finds:
                table, table_settings = _main_places(studies[name], experiment, runs, usual, settings_of)
            else:
                table, table_settings = _planned_places(studies[name], experiment)
            table = table.assign(study=name, document=experiment.name)
            tables.append(table.assign(main=experiment.main, found=experiment.finds))
            settings += table_settings
    places = pd.concat(tables, ignore_index=True)
    places["point"] = [point.label for point in places["point_object"]]
    places = with_text_as_objects(places)
    return places.rename_axis("place").reset_index(), dict(enumerate(settings))


def _planned_places(study: Study, experiment: Experiment) -> tuple[pd.DataFrame, list[Settings]]:
    """The places of an experiment: those for which its grid plans runs."""
    planned = experiment.runs
    line_numbers = {line: number for number, line in enumerate(experiment.all_lines)}
    column_numbers = {column: number for number, column in enumerate(experiment.columns)}
    rows = [
        (
            *astuple(column),
            column_numbers[column],
            line_numbers[line],
            point,
            difference_text({**line.settings, **point.settings}, {}),
            cell.hashes,
            cell.seeds,
        )
        for (column, line, point), cell in planned.items()
    ]
    names = ["column_number", "line_number", "point_object", "setting", "hashes", "seeds"]
    table = pd.DataFrame(rows, columns=[*WHERE, *names])
    table = table.assign(inner=range(len(table)), cell="", is_planned=True)
    lines = _lines_frame(study, experiment.all_lines).drop(columns="setting")
    return table.merge(lines, on="line_number", how="left"), [cell.settings for cell in planned.values()]


def _main_places(
    study: Study, experiment: Experiment, runs: pd.DataFrame, usual: pd.DataFrame, settings_of: SettingsOf
) -> tuple[pd.DataFrame, list[Settings]]:
    """The places of a main table: every line in every column."""
    columns = pd.DataFrame(map(astuple, experiment.columns), columns=WHERE)
    columns["column_number"] = range(len(columns))
    known = pd.concat([runs.loc[~runs["special"], [*WHERE, "method"]], usual[[*WHERE, "method"]]])
    listed = runs[runs["listed"]].drop_duplicates("cell")[[*WHERE, "method", "setting", "cell"]]
    stored_methods = sorted(set(columns.merge(known, on=WHERE)["method"]))
    listed_here = columns.merge(listed, on=WHERE)
    stored_settings = {str(name): set(part) for name, part in listed_here.groupby("method")["setting"]}
    lines = _lines_frame(study, found_lines(study, study.lines, stored_methods, stored_settings))

    planned = usual[[*WHERE, "method", "cell", "seeds"]].rename(columns={"cell": "usual_cell"})
    table = columns.merge(lines.assign(is_baseline=False), how="cross")
    table = table.merge(
        listed.rename(columns={"method": "reads"}), on=[*WHERE, "reads", "setting"], how="left"
    ).merge(
        planned.assign(setting="").rename(columns={"method": "reads"}),
        on=[*WHERE, "reads", "setting"],
        how="left",
    )
    is_planned = table["usual_cell"].notna()
    seeds = [seeds if planned else () for seeds, planned in zip(table["seeds"], is_planned, strict=True)]
    cells = table["cell"].fillna(table["usual_cell"])
    point = experiment.points[0]
    table = table.drop(columns="usual_cell").assign(
        cell=table["cell"].fillna(""),
        is_planned=is_planned,
        seeds=pd.Series(seeds, dtype=object),
        hashes=pd.Series([()] * len(table), dtype=object),
        point_object=pd.Series([point] * len(table), dtype=object),
        inner=0,
    )
    return table, [settings_of.get(cell, {}) for cell in cells]


def found_lines(
    study: Study,
    lines: Sequence[Line],
    stored_methods: Sequence[str],
    stored_settings: Mapping[str, set[str]],
) -> list[Line]:
    """The lines of a main table: its own, those of other methods, and those of other settings that were run.

    ``stored_methods`` were run or are planned in its columns; ``stored_settings`` are the settings of a
    method that a line may show.
    """
    own_names = {line.method for line in lines}
    others = [
        Line(name, study.title_of(name), is_own=False) for name in stored_methods if name not in own_names
    ]
    return [
        replace(line, setting=setting) if setting else line
        for line in (*lines, *others)
        for setting in sorted({"", *stored_settings.get(line.runs, ())})
    ]


def _lines_frame(study: Study, lines: Sequence[Line]) -> pd.DataFrame:
    """A row a line: line_number, line, method, reads, line_object, row, setting, and

    usual         the line is the study's, not found in the database under other settings
    is_baseline   the line is the baseline, in no settings of its own
    """
    rows = [
        {
            "line_number": number,
            "line": study.line_title(line),
            "method": line.method,
            "reads": line.runs,
            "line_object": line,
            "row": study.row(line),
            "setting": line.setting,
            "usual": not line.setting,
            "is_baseline": line.method == study.baseline and not line.settings,
        }
        for number, line in enumerate(lines)
    ]
    return pd.DataFrame(rows)
