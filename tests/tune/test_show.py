"""What searches look like in a dry run."""

from bench.cli.tune import standing
from bench.runner.plan import Estimator
from bench.tune.search import Search

from .toy_tuning import go_on, tuning


def test_a_search_has_a_line() -> None:
    nobody_knows = Estimator((), "cpu")
    new = Search(tuning(trials=9))
    nothing = "local cora non-overlapping 3: 0 of 9 trials, 0 of 216 client epochs, best -"
    assert standing(new, nobody_knows, "") == f"{nothing}: to do, time unknown"
    assert standing(new, nobody_knows, "no file") == f"{nothing}: no file"
    done = standing(go_on(tuning(trials=1)), nobody_knows, "")
    assert done.startswith("local cora non-overlapping 3: 1 of 1 trials, 24 of 24 client epochs, best ")
    assert done.endswith(": done: trials used up")
