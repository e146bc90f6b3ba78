"""Default against tuned as a document: accuracies, their tests, the winners' ranking and the searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.report.captions import circumstances
from bench.report.cells import Cells, Selection
from bench.report.ranking_views import MARKS, tables
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.statistic import Records, Statistic, number, place, read_as
from bench.report.study import Study
from bench.report.table import Document, Entry, Summary, Table
from bench.report.tables import places
from bench.report.tuned import client_epochs, trials
from bench.report.tuning import Found, Pair, methods, tuned_pairs, winners_ranking
from bench.report.wording import label, signed, with_std
from bench.statistics.paired import ALPHA, REGION


def _ranks(values: dict[str, float]) -> dict[str, int]:
    """1 for the highest; equal values, as printed, share the better rank."""
    rounded = {name: round(value, 2) for name, value in values.items()}
    return {name: 1 + sum(other > value for other in rounded.values()) for name, value in rounded.items()}


def _ranked(pairs: dict[str, Pair], which: int) -> dict[str, int]:
    return _ranks({method: pair.means[which] for method, pair in pairs.items()})


def _difference(pair: Pair) -> str:
    if pair.kept:
        return "default won"
    if pair.comparison is None or pair.comparison.difference is None:
        return "-"
    return f"{signed(round(pair.comparison.difference, 2) + 0.0)} {MARKS[pair.comparison.verdict]}"


def _p(pair: Pair) -> str:
    corrected = pair.comparison.corrected if pair.comparison else None
    return "-" if corrected is None else f"{corrected:.2g}"


def _table(study: Study, found: Found) -> Table:
    heads = ("Default", "Tuned", "Difference", "p")
    entries: dict[tuple[Column, str], tuple[Entry, ...]] = {}
    for column, here in found.items():
        best = [
            places({method: pair.means[which] for method, pair in here.pairs.items()}) for which in (0, 1)
        ]
        for method, pair in here.pairs.items():
            shown = [cell.measured for cell in (pair.default, pair.winner)]
            entries[column, method] = (
                *(
                    Entry(with_std(each.mean, each.std), best[which].get(method, 0))
                    for which, each in enumerate(shown)
                    if each is not None
                ),
                Entry(_difference(pair)),
                Entry(_p(pair)),
            )
    return Table(
        "tuned",
        "Default and tuned",
        "Method",
        tuple((column.described(study.title_of(column.dataset)), len(heads)) for column in found),
        heads * len(found),
        tuple(
            (
                study.title_of(method),
                tuple(
                    entry
                    for column in found
                    for entry in entries.get((column, method), (Entry("-"),) * len(heads))
                ),
            )
            for method in methods(found)
        ),
    )


def _winners(study: Study, found: Found) -> Table:
    columns = ("Trials", "Client epochs", "Validation, default", "Validation, winner", "Winner's settings")
    rows = []
    for column, here in found.items():
        for method, pair in here.pairs.items():
            record = pair.search.record
            default = record.default_validation
            entries = (
                trials(pair.search),
                client_epochs(pair.search),
                "-" if default is None else f"{100 * default:.2f}",
                f"{100 * record.winner.validation:.2f}",
                _settings(pair),
            )
            where = column.described(study.title_of(column.dataset))
            rows.append((f"{study.title_of(method)}, {where}", tuple(map(Entry, entries))))
    return Table("searches", "The searches", "Method", (("", len(columns)),), columns, tuple(rows))


def _settings(pair: Pair) -> str:
    return "the default's" if pair.kept else ", ".join(pair.search.changes)


def _short(study: Study, found: Found) -> tuple[Table, ...]:
    """A table a column, in 80 columns."""
    made = []
    for column, here in found.items():
        default, tuned = _ranked(here.pairs, 0), _ranked(here.pairs, 1)
        rows = tuple(
            (
                study.title_of(method),
                (
                    Entry(f"{pair.means[0]:.2f} ({default[method]})"),
                    Entry(f"{pair.means[1]:.2f} ({tuned[method]})", 1 if tuned[method] == 1 else 0),
                    Entry(_difference(pair)),
                    Entry(_p(pair)),
                ),
            )
            for method, pair in here.pairs.items()
        )
        title = f"{column.described(study.title_of(column.dataset))} (rank among these)"
        heads = ("Default", "Tuned", "Difference", "p")
        made.append(Table("short", title, "Method", (("", len(heads)),), heads, rows))
    return tuple(made)


def _notes(study: Study, found: Found) -> tuple[str, ...]:
    """Competitors of which one of the two is missing, and searches that were granted unequal budgets."""
    notes = []
    for column, here in sorted(found.items(), key=lambda item: label(study, item[0])):
        where = label(study, column)
        for lacking, alone in (("tuned", here.default_alone), ("default", here.tuned_alone)):
            if alone:
                notes.append(f"without {lacking} runs in {where}: {', '.join(map(study.title_of, alone))}")
        if len(here.budgets) > 1:
            granted = ", ".join(
                f"{study.title_of(method)} {pair.search.record.budget.client_epochs:,.0f}"
                for method, pair in here.pairs.items()
            )
            notes.append(f"unequal budgets in {where}, in client epochs: {granted}")
    return tuple(notes)


def _record(found: Found) -> Iterator[dict[str, str]]:
    for column, here in found.items():
        for method, pair in here.pairs.items():
            record, tested = pair.search.record, pair.comparison
            low, high = (tested and tested.interval) or (None, None)
            yield {
                **place(column),
                "method": method,
                "n_default": str(len(pair.default.seeds)),
                "default": number(pair.means[0]),
                "n_tuned": str(len(pair.winner.seeds)),
                "tuned": number(pair.means[1]),
                "difference": number(tested.difference if tested else None),
                "low": number(low),
                "high": number(high),
                "p": number(tested.p if tested else None, 6),
                "p_holm": number(tested.corrected if tested else None, 6),
                "verdict": tested.verdict if tested else "default won",
                "validation_default": number(record.default_validation, 6),
                "validation_tuned": number(record.winner.validation, 6),
                "trials": str(record.used.trials),
                "trials_granted": str(record.budget.trials),
                "client_epochs": number(record.used.client_epochs, 1),
                "client_epochs_granted": number(record.budget.client_epochs, 1),
                "winner": " ".join(pair.search.changes),
            }


def tuning(study: Study, boards: Sequence[Cells], results: Results, selection: Selection) -> Statistic | None:
    """Default against tuned in every column of a study; None where no method was tuned."""
    found = tuned_pairs(study, boards, results, selection)
    if not found:
        return None
    pairs = [pair for here in found.values() for pair in here.pairs.values()]
    cells = [cell for pair in pairs for cell in (pair.default, *(() if pair.kept else (pair.winner,)))]
    name = f"{study.name}_tuned"
    notes = _notes(study, found)
    equal = all(len(here.budgets) == 1 for here in found.values())
    ranking = winners_ranking(study, found, results)
    document = Document(
        name=name,
        title=f"{study.title}: default against tuned",
        caption=(
            read_as(study, study.primary),
            "Tuned: the configuration that a search found by validation accuracy"
            f"{', with the same budget for every method of a column' if equal else ''} (bench tune). "
            "'Default won': no configuration that was tried was better, and the tuned cell is the default's.",
            "Difference: tuned minus default in points over common seeds. p: paired t test, two-sided, with "
            "the unit of the ranking's tests and Holm's correction over the methods of a column. Better (>) "
            f"or worse (<): p below {ALPHA:g} and more than {REGION:g} points. Equivalent (=): the 95 % "
            f"interval lies within ±{REGION:g} points. Undecided (?): neither.",
            "Ranking, groups and tests of all pairs are those of the tuned cells, made as in "
            f"{study.name}_ranking.",
            *circumstances(
                study,
                [cell.group for cell in cells if cell.group],
                results,
                [pair.search for pair in pairs if pair.kept],
            ),
        ),
        notes=notes,
        views=(
            _table(study, found),
            *(tables(study, ranking) if ranking else ()),
            _winners(study, found),
        ),
        details=(),
        summary=Summary(_short(study, found), None, notes),
        primary=(),
        cells=tuple(cells),
    )
    return Statistic(document, (Records(f"{name}_pairs", tuple(_record(found))),))
