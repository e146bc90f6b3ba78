"""A page for every method and data set, from the code and from the frame of cells.

A Sphinx extension: before the sources are read it writes ``methods.md``, ``datasets.md`` and the folders of
the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import escape
from sphinx.application import Sphinx

import bench
from bench.dataset import DATASETS, Dataset
from bench.engine.method import Method
from bench.engine.methods import METHODS
from bench.hyper import hyper_parameters
from bench.report.document import css_class, symbol
from bench.site.leaderboard import base_of, description, summary
from bench.sources import RawFile
from bench.studies.study import STUDIES

REST = ("limits", "search", "meaning")
"""What stands in a table of hyper-parameters as it is given."""

FAMILIES = {"graph": "Graphs", "hypergraph": "Hypergraphs", "images": "Images"}


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; a cell is Markdown."""
    head = ["{.cells}", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return [*head, *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)]


def toctree(names: Iterable[str]) -> list[str]:
    """A list of pages for the side bar."""
    return ["```{toctree}", ":hidden:", "", *names, "```", ""]


def code(text: str) -> str:
    """A name as code; nothing for nothing."""
    return f"`{text}`" if text else ""


def competing_cells() -> pd.DataFrame:
    """Measured test accuracy of every table that compares methods, once for each paper that prints it."""
    cells = bench.cells()
    competing = {
        (study, table.name)
        for study in STUDIES.all()
        for table in STUDIES.named(study).experiments
        if table.competes
    }
    measured = cells[(cells["measure"] == "accuracy") & (cells["n"] > 0)]
    return measured[[pair in competing for pair in zip(measured["study"], measured["document"], strict=True)]]


def measured(cells: pd.DataFrame, title: str) -> list[str]:
    """A table of cells beside their published values; lines need not repeat the page's title."""
    rows = []
    for cell in cells.to_dict("records"):
        verdict = cell["verdict"]
        grade = f'<span class="grade {css_class(verdict)}">{symbol(verdict)} {escape(verdict)}</span>'
        beside = pd.notna(cell["published_mean"])
        rows.append(
            (
                cell["line"].removeprefix(title).strip(),
                f"{cell['dataset']} {cell['scenario']} {cell['clients']}",
                f"{cell['mean']:.2f} ± {cell['std']:.2f} ({cell['n']})",
                f"{cell['published_mean']:.2f}" if beside else "",
                f"{cell['difference']:+.2f}" if beside else "",
                grade if beside else "",
                f"{STUDIES.named(cell['study']).title}, {cell['table'] or cell['document']}",
            )
        )
    names = ("Line", "Clients", "Measured (seeds)", "Published", "Diff.", "Grade", "Table")
    if any(row[0] for row in rows):
        return table(names, rows)
    return table(names[1:], [row[1:] for row in rows])


def method_page(method: type[Method], cells: pd.DataFrame) -> list[str]:
    """Description, hyper-parameters and measured cells of a method."""
    facts = [method.reference, f"name in the suite: `{method.name}`", f"data: {', '.join(method.families)}"]
    if base := base_of(method, METHODS.all()):
        facts.append(f"a variant of [{base.title}]({base.name}.md)")
    lines = [
        f"# {method.title}",
        "",
        "; ".join(filter(None, facts)),
        "",
        "```{raw} html",
        str(description(method)),
        "```",
        "",
    ]
    if hyper := hyper_parameters(method.Hyper):
        rows = [
            (code(f"method.{one['name']}"), code(one["default"]), *(one[key] for key in REST))
            for one in hyper
        ]
        lines += [
            "## Hyper-parameters",
            "",
            *table(("Name", "Default", "Range", "Tuning tries", "Meaning"), rows),
            "",
        ]
    if len(cells):
        lines += ["## Measured", "", *measured(cells, method.title), ""]
    return lines


def _checksum(file: RawFile) -> str:
    return f"sha256:{file.sha256}" if file.sha256 else f"md5:{file.md5}" if file.md5 else ""


def dataset_page(kind: type[Dataset], cells: pd.DataFrame) -> list[str]:
    """Source, files and measured cells of a data set."""
    at_hand = "comes with the package" if kind.embedded else "downloaded, or found in a data root"
    facts = [
        ("Name in the suite", code(kind.name)),
        ("Family", FAMILIES[kind.family].lower()),
        ("Source", f"<{kind.homepage}>" if kind.homepage else "not stated"),
        ("Licence", kind.licence or "not recorded"),
        ("Raw files", at_hand),
        ("Scenarios", ", ".join(map(code, kind.scenarios))),
        ("Rounds, local epochs", f"{kind.protocol.rounds}, {kind.protocol.local_epochs}"),
        ("Split in percent", " / ".join(f"{share:g}" for share in kind.protocol.split)),
        ("Client model", code(kind.client.model)),
    ]
    lines = [f"# {kind.title}", "", *table(("", ""), facts), ""]
    if kind.files:
        rows = [(code(file.path), code(_checksum(file))) for file in kind.files]
        lines += ["## Raw files", "", *table(("File", "Checksum"), rows), ""]
    if len(cells):
        lines += ["## Measured", "", *measured(cells, ""), ""]
    return lines


def write(path: Path, lines: Iterable[str]) -> None:
    """Write a page where its text has changed, so that Sphinx reads no other again."""
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def generate(source: Path) -> None:
    """Write all pages below the folder of the sources."""
    cells = competing_cells()
    methods = list(METHODS.all().values())
    (source / "methods").mkdir(exist_ok=True)
    for method in methods:
        write(
            source / "methods" / f"{method.name}.md",
            method_page(method, cells[cells["method"] == method.name]),
        )
    rows = [
        (
            f"[{method.title}](methods/{method.name}.md)<br>{code(method.name)}",
            summary(method),
            method.reference,
            ", ".join(method.families),
        )
        for method in methods
    ]
    lines = ["# Methods", "", *table(("Method", "What it does", "Paper", "Data"), rows), ""]
    write(source / "methods.md", lines + toctree(f"methods/{method.name}" for method in methods))

    kinds = list(DATASETS.all().values())
    (source / "datasets").mkdir(exist_ok=True)
    for kind in kinds:
        write(
            source / "datasets" / f"{kind.name}.md", dataset_page(kind, cells[cells["dataset"] == kind.name])
        )
    rows = [
        (f"[{kind.title}](datasets/{kind.name}.md)", code(kind.name), FAMILIES[kind.family], kind.licence)
        for kind in kinds
    ]
    lines = ["# Data sets", "", *table(("Data set", "Name", "Family", "Licence"), rows), ""]
    write(source / "datasets.md", lines + toctree(f"datasets/{kind.name}" for kind in kinds))


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before the sources are read."""
    app.connect("builder-inited", lambda app: generate(Path(app.srcdir)))
    return {"parallel_read_safe": True}
