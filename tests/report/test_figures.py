import csv
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from fake_database import FakeDatabase
from study_cells import tables

from bench.grids import load_grid, plan
from bench.report import figures as drawing_module
from bench.report import report as building
from bench.report.figures import Figure, draw
from bench.report.panels.costs import Priced, apart, front, log_ticks
from bench.report.panels.curves import Curve, CurvePanel
from bench.report.panels.pairs import PairPanel
from bench.report.report import Report, Request, build
from bench.report.settings import Column
from bench.reports.fedhgn import FedHGN
from bench.reports.fedsheafhn import FedSheafHN

LOOKS_AT_FIGURES = True

Rows = list[dict[str, str]]
CORA_10 = Column("cora", "non-overlapping", 10)


class Partitioned(FakeDatabase):
    """Every seed has a partition of its own."""

    def runs(self, **filters: Any) -> pd.DataFrame:
        runs = super().runs(**filters)
        return runs.assign(partition_hash=[f"{seed:064d}" for seed in runs["seed"]])


def database(kind: type[FakeDatabase] = FakeDatabase) -> FakeDatabase:
    """Local and two more methods on Cora with 10 and 20 clients, hand-made."""
    made = kind()
    for seed in (0, 1):
        made.add("local", seed, [70, 80], seconds_total=4.0, shift={("received", "best_val"): 0})
        made.add(
            "fedavg",
            seed,
            [60, 90 + seed],
            seconds_total=2.0 + 4 * seed,
            bytes_up=3_000_000,
            bytes_down=5_000_000,
            shift={("received", "best_val"): -10 - 2 * seed},
        )
        made.add(
            "fedpub",
            seed,
            [50, 60],
            seconds_total=8.0,
            bytes_up=8_000_000,
            artefacts={"collaboration": np.full((10, 10), 0.1 + 0.2 * seed)},
        )
    made.add("fedavg", 2, [10, 20], bytes_up=9_000_000, bytes_down=5_000_000)  # no Local of this seed
    made.add("local", 0, [50, 60], clients=20)
    made.add("local", 1, [52, 62], clients=20)
    return made


def report(out: Path, source: FakeDatabase, **request: Any) -> Report:
    return build(source, Request(**request), {"fedsheafhn": FedSheafHN}, out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "usual", lambda grids: {})
        patch.setattr(FedSheafHN, "experiments", tables(FedSheafHN))
        report(out, database())
    return out


def test_unchanged_results_give_byte_identical_files(folder: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "usual", lambda grids: {})
        patch.setattr(FedSheafHN, "experiments", tables(FedSheafHN))
        built = report(tmp_path, database())
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in built.paths}
    assert {path.name for path in folder.iterdir()} == {path.name for path in built.paths}
    for path in built.paths:
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name
    assert {path.suffix for path in built.paths} == {".md", ".tex", ".csv", ".pdf", ".png", ".html"}


def test_figures_are_not_blank(folder: Path) -> None:
    for name in ("stages", "clients"):
        pixels = matplotlib.image.imread(folder / f"fedsheafhn_table1_{name}.png")
        assert len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 20
        assert (folder / f"fedsheafhn_table1_{name}.pdf").read_bytes().startswith(b"%PDF")


def read(folder: Path, kind: str) -> Rows:
    with (folder / f"fedsheafhn_table1_{kind}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_cost_figures_hold_medians_and_the_pareto_front(folder: Path) -> None:
    # FedAvg's means over clients: 75, 75.5, 15.
    found = {row["method"]: row for row in read(folder, "megabytes") if row["clients"] == "10"}
    assert {name: (row["mean"], row["megabytes"], row["front"]) for name, row in found.items()} == {
        "local": ("75.0000", "0.0000", "1"),
        "fedavg": (f"{165.5 / 3:.4f}", "8.0000", "0"),
        "fedpub": ("55.0000", "8.0000", "0"),
    }
    assert found["fedavg"]["std"] == f"{np.std([75, 75.5, 15], ddof=1):.4f}"
    seconds = {row["method"]: row["seconds"] for row in read(folder, "seconds")}
    assert seconds == {"local": "4.0000", "fedavg": "2.0000", "fedpub": "8.0000"}  # of 2, 6 and 0


def test_a_column_of_one_method_has_no_cost_panel(folder: Path) -> None:
    assert {row["clients"] for row in read(folder, "megabytes")} == {"10"}
    assert {row["clients"] for row in read(folder, "stages")} == {"10", "20"}


def test_stages_are_read_each_by_itself(folder: Path) -> None:
    found = {row["method"]: row for row in read(folder, "stages") if row["clients"] == "10"}
    fedavg = found["fedavg"]
    assert fedavg["n"] == "3"
    assert fedavg["trained_mean"] == f"{(75 + 75.5 + 15) / 3:.4f}"
    assert fedavg["received_mean"] == f"{(65 + 63.5 + 15) / 3:.4f}"
    assert fedavg["received_std"] == f"{np.std([65, 63.5, 15], ddof=1):.4f}"
    assert (found["local"]["trained_mean"], found["local"]["received_mean"]) == ("75.0000", "75.0000")


def test_differences_are_paired_by_seed_and_client_and_sorted(folder: Path) -> None:
    rows = [(row["method"], row["client"], row["difference"]) for row in read(folder, "differences")]
    # Client 0: 60 - 70 in both seeds; client 1: 90 - 80 and 91 - 80. The third seed has no Local.
    assert rows == [
        ("fedavg", "0", "-10.0000"),
        ("fedavg", "1", "10.5000"),
        ("fedpub", "0", "-20.0000"),
        ("fedpub", "1", "-20.0000"),
    ]


def test_clients_of_other_partitions_are_not_averaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FedSheafHN, "experiments", tables(FedSheafHN))
    made = Partitioned()
    for seed, (alone, other) in enumerate([(70, 60), (50, 80)]):
        for method, right in (("local", alone), ("fedpub", other)):
            planned = plan(load_grid("robust"), *("cora", "non-overlapping", 10), method, {}, seed)
            assert planned.spec is not None
            weights = np.full((10, 10), 0.1 + seed)
            made.add("", 0, [right], spec=planned.spec, artefacts={"collaboration": weights})
    request = Request(grid="robust", methods=("local", "fedpub"))
    build(made, request, {"fedsheafhn": FedSheafHN}, tmp_path)
    rows = [(row["client"], row["difference"]) for row in read(tmp_path, "differences")]
    assert rows == [("0 of seed 0", "-10.0000"), ("0 of seed 1", "30.0000")]
    weights = read(tmp_path, "collaboration")
    assert {(row["n"], row["weight"]) for row in weights} == {("1", "0.100000")}


def test_counts_join_the_columns_of_a_data_set(folder: Path) -> None:
    rows = [(row["method"], row["clients"], row["n"], row["mean"]) for row in read(folder, "counts")]
    assert rows == [("local", "10", "2", "75.0000"), ("local", "20", "2", "56.0000")]


def test_collaboration_is_the_mean_of_seeds_on_one_partition(folder: Path) -> None:
    rows = read(folder, "collaboration")
    assert len(rows) == 100
    assert {(row["method"], row["n"], row["weight"]) for row in rows} == {("fedpub", "2", "0.200000")}
    assert [(row["client"], row["from"]) for row in rows[:11]][-2:] == [("0", "9"), ("1", "0")]


def test_captions_name_stage_rule_average_and_seeds(folder: Path) -> None:
    text = (folder / "fedsheafhn_table1.md").read_text(encoding="utf-8").replace("\\", "")
    captions = {
        name: text.split(f"![fedsheafhn_table1_{name}]")[1].split("*")[1]
        for name in ("differences", "stages", "counts", "megabytes", "seconds", "collaboration", "clients")
    }
    for name, caption in captions.items():
        assert caption.endswith("Seeds: 0-2."), name
    for name in ("differences", "clients", "counts", "megabytes", "seconds"):
        assert "(stage trained, rule best_val)" in captions[name]
    for name in ("stages", "counts", "megabytes", "seconds"):
        assert "unweighted mean over clients" in captions[name]
    assert "(rule best_val, for each stage by itself)" in captions["stages"]


def test_a_report_of_one_method_draws_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "usual", lambda grids: {})
    monkeypatch.setattr(FedSheafHN, "experiments", tables(FedSheafHN))
    made = FakeDatabase()
    made.add("fedavg", 0, [50])  # one seed, one client, no curve, no cost
    report(tmp_path, made, methods=("fedavg",))
    assert {path.name for path in tmp_path.glob("*.png")} == {
        "fedsheafhn_table1_clients.png",
        "fedsheafhn_table1_stages.png",
    }


def test_lines_of_an_experiment_stand_beside_the_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FakeDatabase()
    for seed in (0, 1):
        for where in (("cora", "non-overlapping", 20), ("ogbn-arxiv", "overlapping", 30)):
            spec = plan(load_grid("ablation"), *where, "fedsheafhn", {}, seed).spec
            assert spec is not None
            made.add("", 0, [70 + seed], spec=spec)
    report(tmp_path, made, grid="ablation")
    with (tmp_path / "fedsheafhn_ablation_lines.csv").open(encoding="utf-8", newline="") as file:
        rows = {(row["dataset"], row["scenario"], row["method"]): row for row in csv.DictReader(file)}
    whole = rows["ogbn-arxiv", "overlapping", "+ Dynamic embedding"]
    assert (whole["n"], whole["measured_mean"], whole["measured_std"]) == ("2", "70.5000", "0.7071")
    assert (whole["published_mean"], whole["published_std"]) == ("67.8900", "")  # as printed in Table 4
    assert rows["cora", "non-overlapping", "+ Dynamic embedding"]["published_mean"] == ""
    unrun = rows["ogbn-arxiv", "non-overlapping", "+ Hypernetwork"]
    assert (unrun["n"], unrun["measured_mean"], unrun["published_mean"]) == ("0", "", "61.2600")


def points(*values: tuple[float, float]) -> list[Priced]:
    return [Priced("m", "M", 1, mean, None, cost) for cost, mean in values]


def test_the_pareto_front_by_brute_force() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        drawn = points(*((float(c), float(m)) for c, m in random.integers(0, 6, (8, 2))))
        beaten = [
            any(
                other.cost <= each.cost
                and other.mean >= each.mean
                and (other.cost, other.mean) != (each.cost, each.mean)
                for other in drawn
            )
            for each in drawn
        ]
        best = {(each.cost, each.mean) for each, lost in zip(drawn, beaten, strict=True) if not lost}
        found = front(drawn)
        assert {(each.cost, each.mean) for each in found} == best
        assert [each.cost for each in found] == sorted({cost for cost, _ in best})


def test_points_of_equal_cost_are_set_apart_and_others_stay() -> None:
    assert apart([10.0, 0.0, 10.05, 20.0, 0.0]) == [-0.5, -0.5, 0.5, 0.0, 0.5]
    assert apart([10.1, 10.0, 10.05]) == [1.0, -1.0, 0.0]


@pytest.mark.parametrize(("low", "high"), [(1500, 3400), (2.1, 2.3), (80, 1200), (0.003, 90_000), (7, 7.5)])
def test_ticks_of_a_cost_axis_are_few_and_inside(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert 1 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_every_method_looks_the_same_in_every_kind_of_figure(folder: Path) -> None:
    from bench.report import style
    from bench.report.panels.pairs import Pair

    x = np.arange(2.0)
    curves = CurvePanel("t", CORA_10, (Curve("fedpub", "FED-PUB", x, x, x, 2),))
    pairs = PairPanel("t", CORA_10, (Pair("fedpub", "x", "FED-PUB", 1, (50, 1), (60, 1)),), "a", "b", True)
    look = style.of("fedpub")
    for panel in (curves, pairs):
        lines = draw(Figure("d", "n", "c", [panel])).axes[0].get_lines()
        assert look.marker in {line.get_marker() for line in lines}
        assert {line.get_color() for line in lines} == {look.colour}


def test_the_accuracy_axis_of_pairs_says_where_it_starts() -> None:
    from bench.report.panels.pairs import Pair

    panel = PairPanel("t", CORA_10, (Pair("local", "l", "L", 2, (72.0, 3.5), None),), "a", "b", False)
    canvas = draw(Figure("d", "n", "c", [panel]))
    assert canvas.axes[0].get_xlim()[0] == 65  # 72 - 3.5 - 1, down to a multiple of 5
    assert canvas.axes[0].get_xlabel() == "Test accuracy (%), from 65"
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == ["A"]


def test_fedhgn_compares_trimmings_and_lengths_in_figures() -> None:
    assert {each.name for each in FedHGN.experiments if "lines" in each.figures} == {"trimming", "longer"}
    assert {each.name for each in FedSheafHN.experiments if "lines" in each.figures} == {
        "ablation",
        "collaboration_gnn",
    }


def test_a_figure_is_drawn_again_only_where_its_files_are_not_those_of_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    def drawing(figure: Figure) -> Any:
        drawn.append(figure.name)
        return draw(figure)

    monkeypatch.setattr(drawing_module, "draw", drawing)

    def saved(last: float) -> tuple[int, list[bytes]]:
        """How often a figure with this last value was drawn, and its files."""
        drawn.clear()
        x = np.array([1.0, 2.0])
        curve = Curve("local", "Local", x, np.array([50.0, last]), np.zeros(2), 2)
        figure = Figure("table", "curve", "", [CurvePanel("Cora", CORA_10, (curve,))])
        paths = drawing_module.save(figure, tmp_path)
        return len(drawn), [path.read_bytes() for path in paths]

    first = saved(60.0)
    assert first[0] == 1
    assert saved(60.0) == (0, first[1])
    other = saved(61.0)
    assert other[0] == 1
    assert all(one != two for one, two in zip(first[1], other[1], strict=True))
    for name in ("curve.pdf", "curve.png"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[:-20])
        assert saved(61.0) == (1, other[1])
        (tmp_path / name).unlink()
        assert saved(61.0) == (1, other[1])
