"""Results as pandas frames, of the user's own database and of the results that come with the suite;
``docs/notebook.ipynb`` shows them.
"""

from bench.frames.whole_frames import cells, clients, curves, ranks, runs

__all__ = ["cells", "clients", "curves", "ranks", "runs"]
