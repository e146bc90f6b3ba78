"""Drawings of a study's trials; every accuracy is a validation accuracy in percent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bench.report import style
from bench.report.panels.panel import Panel, number
from bench.tune.best_of import expected_best
from bench.tune.record import Trial, trial_of
from bench.tune.space import Value
from bench.tune.tuning import Tuning

VALIDATION = "Validation accuracy (%)"
ENDED = {"complete": "o", "cut": "D", "pruned": "x"}


@dataclass(frozen=True, eq=False)
class TrialsPanel(Panel):
    """Some trials of a study. The panels below differ in what they make of them."""

    tuning: Tuning
    trials: tuple[Trial, ...]

    @property
    def title(self) -> str:  # type: ignore[override]
        """The cell."""
        return self.tuning.title

    @property
    def look(self) -> style.Look:
        """That of the method."""
        return style.of(self.tuning.spec.method)

    @property
    def reached(self) -> list[tuple[Trial, float]]:
        """Trials that reached a number, and it in percent."""
        return [(each, 100 * each.validation) for each in self.trials if each.validation is not None]

    @property
    def default(self) -> Trial | None:
        """The trial of the default configuration, if it has ended."""
        return trial_of(self.tuning.default, self.trials)


class HistoryPanel(TrialsPanel):
    """Every trial in its order, and the best so far."""

    @property
    def header(self) -> tuple[str, ...]:
        """One row a trial, also of those without a number."""
        return ("trial", "state", "validation", "best", "client_epochs", *self.tuning.space)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every trial."""
        for each, best in zip(self.trials, self._best(), strict=True):
            value = None if each.validation is None else 100 * each.validation
            settings = (str(each.parameters[key]) for key in self.tuning.space)
            yield (
                str(each.number),
                each.state,
                number(value),
                number(best),
                number(each.client_epochs),
                *settings,
            )

    def _best(self) -> list[float]:
        won = [100 * (each.validation or 0) if each.may_win else np.nan for each in self.trials]
        return [float(value) for value in np.fmax.accumulate(won)]

    def draw(self, axes: Axes) -> None:
        """A marker a trial by how it ended."""
        axes.set_title(self.title)
        axes.plot(
            [each.number + 1 for each in self.trials],
            self._best(),
            drawstyle="steps-post",
            color=self.look.colour,
            label="best so far",
        )
        for state, marker in ENDED.items():
            points = [(each.number + 1, value) for each, value in self.reached if each.state == state]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    linestyle="none",
                    marker=marker,
                    markersize=4.5,
                    color="0.35",
                    label=state,
                )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        default = f" (number {self.default.number + 1} is the default)" if self.default else ""
        axes.set_xlabel(f"Trial{default}")
        axes.set_ylabel(VALIDATION)
        axes.legend(frameon=False)


class BestOfPanel(TrialsPanel):
    """The expected best of k random trials of those stored, by k."""

    @property
    def header(self) -> tuple[str, ...]:
        """One row a number of trials."""
        return ("k", "expected_best")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every k."""
        for k, value in enumerate(self._values(), start=1):
            yield str(k), number(value)

    def _values(self) -> list[float]:
        return expected_best([value for _, value in self.reached])

    def draw(self, axes: Axes) -> None:
        """A curve, and the default configuration."""
        axes.set_title(self.title)
        values = self._values()
        axes.plot(range(1, len(values) + 1), values, color=self.look.colour, marker="o", markersize=3)
        if self.default is not None and self.default.validation is not None:
            default = 100 * self.default.validation
            axes.axhline(default, color="0.35", linestyle=(0, (4, 2)), linewidth=1.0)
            axes.annotate(
                "default",
                (len(values), default),
                xytext=(0, 2),
                textcoords="offset points",
                fontsize=7,
                color="0.35",
                ha="right",
            )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("Random trials of those stored")
        axes.set_ylabel("Expected best validation (%)")


@dataclass(frozen=True, eq=False)
class ImportancePanel(TrialsPanel):
    """``shares`` of importance by parameter, adding up to 1."""

    shares: Mapping[str, float]

    @property
    def header(self) -> tuple[str, ...]:
        """One row a parameter."""
        return ("parameter", "importance")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every parameter."""
        for key, share in self.shares.items():
            yield key, number(share)

    def draw(self, axes: Axes) -> None:
        """A bar a parameter, the most important one on top."""
        axes.set_title(self.title)
        axes.barh(list(self.shares)[::-1], list(self.shares.values())[::-1], color=self.look.colour)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("Importance for the best quarter of the trials")


@dataclass(frozen=True, eq=False)
class RatePanel(TrialsPanel):
    """The best trial by learning rate: the client's, and a second one (``other``) where there is one."""

    rate: str
    other: str | None

    @property
    def header(self) -> tuple[str, ...]:
        """One row a rate, or a pair of them, that was tried."""
        return (self.rate, *([self.other] if self.other else []), "trials", "best")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every rate that was tried."""
        for rates, values in sorted(self._groups().items()):
            yield *map(str, rates), str(len(values)), number(max(values))

    def _groups(self) -> dict[tuple[Value, ...], list[float]]:
        groups: dict[tuple[Value, ...], list[float]] = defaultdict(list)
        keys = [self.rate, *([self.other] if self.other else [])]
        for each, value in self.reached:
            groups[tuple(each.parameters[key] for key in keys)].append(value)
        return groups

    def draw(self, axes: Axes) -> None:
        """A heat map with the number of trials in every field, or a curve."""
        axes.set_title(self.title)
        if self.other is None:
            self._draw_curve(axes)
        else:
            self._draw_map(axes, self.other)

    def _draw_curve(self, axes: Axes) -> None:
        points = [(each.parameters[self.rate], value) for each, value in self.reached]
        axes.plot(*zip(*points, strict=True), linestyle="none", marker="o", markersize=3.5, color="0.6")
        best = [(rate, max(values)) for (rate,), values in sorted(self._groups().items())]
        axes.plot(*zip(*best, strict=True), color=self.look.colour, marker="o", markersize=4.5)
        axes.set_xscale("log")
        axes.set_xticks(
            [float(rate) for rate in self.tuning.space[self.rate]], _texts(self.tuning, self.rate)
        )
        axes.minorticks_off()
        axes.set_xlabel(named(self.rate))
        axes.set_ylabel(VALIDATION)

    def _draw_map(self, axes: Axes, other: str) -> None:
        across, up = self.tuning.space[self.rate], self.tuning.space[other]
        best = np.full((len(up), len(across)), np.nan)
        for (one, two), values in self._groups().items():
            place = up.index(two), across.index(one)
            best[place] = max(values)
            axes.annotate(
                f"{len(values)}",
                place[::-1],
                ha="center",
                va="center",
                fontsize=7,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )
        image = axes.imshow(best, cmap="cividis_r", interpolation="nearest", origin="lower", aspect="auto")
        axes.figure.colorbar(image, ax=axes).set_label(f"Best v{VALIDATION[1:]}")
        axes.grid(visible=False)
        axes.set_xticks(range(len(across)), _texts(self.tuning, self.rate))
        axes.set_yticks(range(len(up)), _texts(self.tuning, other))
        axes.set_xlabel(named(self.rate))
        axes.set_ylabel(named(other))


def _texts(tuning: Tuning, key: str) -> list[str]:
    return [f"{value:g}" for value in tuning.space[key] if isinstance(value, (int, float))]


def named(key: str) -> str:
    """A dotted key as an axis has it: ``Client learning rate``."""
    section, _, name = key.partition(".")
    text = name if section == "method" else f"{section} {name}"
    return text.replace("_", " ").capitalize()
