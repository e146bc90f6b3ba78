"""Results as pandas frames: the user's own database and the results that come with the suite.
``docs/notebook.ipynb`` shows how to use the frames.
"""

from bench.frames.whole_frames import cells, clients, curves, ranks, runs

__all__ = ["cells", "clients", "curves", "ranks", "runs"]
