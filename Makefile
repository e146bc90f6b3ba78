# make quickstart: set up, run the benchmark on Cora, report.   make test: set up, run the tests.   make docs: build/docs/.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/

.PHONY: quickstart test lint docs frames pages venv clean

venv: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "bench needs Python 3.11 or newer: set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

quickstart: $(READY)
	@$(RUN)bench quickstart
	@echo "      (first, in this shell: . .venv/bin/activate)"

# Workers and the processes that tests start compile what they import once, also where the shell forbids it.
test: $(READY)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(RUN)python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy
	$(RUN)hadolint Dockerfile

docs: $(READY)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	BENCH_HOME=build/docs-home $(RUN)python -m sphinx --fresh-env --fail-on-warning --keep-going --quiet -b html docs build/docs
	BENCH_HOME=build/docs-home $(RUN)bench leaderboard build --out build/docs/leaderboard
	@echo "Documentation: build/docs/index.html"

# The frames of cells and ranks that come with the suite: after new results, and after code that changes cells.
frames: $(READY)
	BENCH_HOME=build/frames-home $(RUN)python scripts/ship_frames.py

# Whatever README and docs/ show of the results: after `make frames`. What stands in sentences is looked through by hand.
pages: $(READY)
	rm -rf build/pages-home build/report build/site
	BENCH_HOME=build/pages-home $(RUN)bench report --out build/report
	$(RUN)python .ci/tables.py build/report --write
	BENCH_HOME=build/pages-home $(RUN)bench leaderboard build --shipped --out build/site
	$(RUN)python .ci/pictures.py build/report build/site
	BENCH_HOME=build/pages-home $(RUN)python .ci/notebook.py docs/notebook.ipynb --write

clean:
	rm -rf $(VENV) build dist docs/methods docs/datasets docs/methods.md docs/datasets.md *.egg-info .mypy_cache .ruff_cache .pytest_cache
