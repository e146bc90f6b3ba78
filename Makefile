# make quickstart: set up, run the benchmark on Cora, report.   make test: set up, run the tests.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/

.PHONY: quickstart test lint venv clean

venv: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "bench needs Python 3.11 or newer: set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

quickstart: $(READY)
	@$(RUN)bench sweep --grid quickstart
	@$(RUN)bench report --grid quickstart --own --out report
	@echo
	@echo "Next: . .venv/bin/activate"
	@echo "      bench report                                  what others have run, both studies"
	@echo "      bench sweep --grid paper_tables --dry-run     what a whole table would cost"

test: $(READY)
	OMP_NUM_THREADS=1 $(RUN)python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
