"""From a source of results to a folder of pages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from bench import __version__
from bench.leaderboard import charts, folder, libraries, runs
from bench.leaderboard.columns import columns
from bench.leaderboard.methods import OtherRuns, about, other_runs
from bench.leaderboard.overview import Coverage, coverage, elsewhere, unranked
from bench.leaderboard.pages import Pages, board_page, method_page
from bench.leaderboard.reading import definitions
from bench.leaderboard.rows import Row, record, rows
from bench.leaderboard.survey import StudySurvey, Survey, survey
from bench.report import frame
from bench.report.ranking_views import ranking_table
from bench.report.results import Results
from bench.report.source import Source
from bench.report.study import Study

if TYPE_CHECKING:
    from bench.engine.method import Method


@dataclass(frozen=True)
class Site:
    """What was built: the number of runs, files and bytes."""

    runs: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Placed:
    """A row with the address of its place on its board and the anchor that both pages give it."""

    row: Row
    anchor: str
    board: str
    dataset: str


def build(
    source: Source, studies: Mapping[str, type[Study]], methods: Mapping[str, type[Method]], out: Path
) -> Site:
    """Write the site into ``out``, which is replaced whole; unchanged results give the same bytes.

    Raises:
        RequestError: no runs, or ``out`` is something else than a site or cannot be written.
    """
    folder.check(out)
    suite = {name for name, cls in methods.items() if cls.__module__.startswith("bench.methods.")}
    found = survey(source, studies, suite)
    with folder.replaced(out) as place:
        number = _write(source, found, methods, place)
        sizes = [path.stat().st_size for path in place.rglob("*") if path.is_file()]
    return Site(number, len(sizes), sum(sizes))


def _write(source: Source, found: Survey, methods: Mapping[str, type[Method]], place: Path) -> int:
    for name in ("assets", "board", "data", "method"):
        (place / name).mkdir()
    packages = _libraries(place / "assets")
    pages = Pages(place)
    placed: dict[str, list[Placed]] = defaultdict(list)
    covered: dict[str, list[Coverage]] = defaultdict(list)
    shown: set[str] = set()
    for each in found.studies:
        for dataset in each.datasets:
            made = _board(each, dataset, found.results, pages, place, methods)
            for one in made:
                placed[one.row.cell.method].append(one)
                shown.update(run.spec_hash for run in one.row.runs)
            covered[each.study.name].append(coverage(each, dataset, [one.row for one in made]))
    beside = other_runs(found.results.runs, shown)
    names = sorted({*methods, *placed, *found.results.runs["method"]})
    titles = {name: _title(name, methods, placed[name]) for name in names}
    for name in names:
        _method(name, titles[name], methods, placed[name], beside.get(name, []), pages)
    shards = runs.write(source, place / "data", titles, {name: method_page(name) for name in names})
    pages.write("run.html", "run.html", shards=",".join(shards.first))
    pages.write("about.html", "about.html", packages=packages, definitions=definitions(), version=__version__)
    pages.write(
        "index.html",
        "index.html",
        studies=[(each, covered[each.study.name], _ranking(each)) for each in found.studies],
        methods=[(name, titles[name], _number(placed[name], beside.get(name, []))) for name in names],
        states=sorted(Counter(found.results.runs["state"]).items()),
        runs=shards.runs,
        elsewhere=elsewhere(found.studies, found.results),
    )
    return shards.runs


def _libraries(assets: Path) -> list[libraries.Library]:
    packages = [*libraries.datatables(), libraries.vega()]
    for library in packages:
        (assets / library.file).write_text(library.text, encoding="utf-8", newline="\n")
    for own in sorted(files("bench.leaderboard").joinpath("assets").iterdir(), key=lambda file: file.name):
        (assets / own.name).write_bytes(own.read_bytes())
    return packages


def _board(
    found: StudySurvey,
    dataset: str,
    results: Results,
    pages: Pages,
    place: Path,
    methods: Mapping[str, type[Method]],
) -> list[Placed]:
    study, address = found.study, board_page(found.study.name, dataset)
    name = Path(address).stem
    made = [
        Placed(row, f"{name}-{number}", address, study.title_of(dataset))
        for number, row in enumerate(rows(found, dataset, results), 1)
    ]
    drawn = charts.write(found, dataset, results, place / "data", name)
    frame.write(place / "data" / f"{name}.csv", record([one.row for one in made]))
    families = {one.row.cell.method: about(one.row.cell.method, methods).family for one in made}
    pages.write(
        address,
        "board.html",
        study=study,
        dataset=study.title_of(dataset),
        name=name,
        rows=made,
        columns=columns(study),
        families=families,
        filters=_filters([one.row for one in made], families),
        charts=drawn,
        waiting=found.waiting,
    )
    return made


def _filters(rows: Sequence[Row], families: Mapping[str, str]) -> list[tuple[str, str, list[str]]]:
    """Name, label and options of each select above a board, in the order of the rows."""

    def options(values: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(values))

    return [
        ("table", "Table", options([row.cell.table for row in rows])),
        ("scenario", "Scenario", options([row.cell.column.scenario for row in rows])),
        ("clients", "Clients", options([str(row.cell.column.clients) for row in rows])),
        ("family", "Method family", sorted({families[row.cell.method] for row in rows})),
        ("tuning", "Settings", options([row.cell.tuning for row in rows])),
        ("verdict", "Verdict or state", sorted({row.cell.verdict for row in rows})),
    ]


def _method(
    name: str,
    title: str,
    methods: Mapping[str, type[Method]],
    placed: Sequence[Placed],
    beside: Sequence[OtherRuns],
    pages: Pages,
) -> None:
    described = about(name, methods)
    preset = methods.get(described.preset_of)
    pages.write(
        method_page(name),
        "method.html",
        method=described,
        title=title,
        preset=(described.preset_of, preset.title) if preset else None,
        rows=placed,
        beside=beside,
    )


def _title(name: str, methods: Mapping[str, type[Method]], placed: Sequence[Placed]) -> str:
    """A method's own title, else that of its row in a study's table, else its name."""
    if name in methods:
        return methods[name].title
    return next((one.row.title for one in placed if one.row.main), name)


def _number(placed: Sequence[Placed], beside: Sequence[OtherRuns]) -> int:
    """How many runs a method's page leads to, each once."""
    hashes = {run.spec_hash for one in placed for run in one.row.runs}
    return len(hashes | {run.spec_hash for part in beside for run in part.runs})


def _ranking(found: StudySurvey) -> dict[str, object] | None:
    if found.ranking is None:
        return None
    return {
        "methods": found.ranking.methods,
        "table": ranking_table(found.study, found.ranking),
        "tasks": len(found.ranking.tasks),
        "unranked": unranked(found.ranking),
        "grouped": bool(found.ranking.groups),
    }
