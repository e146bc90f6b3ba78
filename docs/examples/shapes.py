"""A data set of pictures in one file: a zip archive with a folder a class (made up, in docs/examples/data).

BENCH_PLUGINS=docs/examples/shapes.py bench sweep -d shapes -k 4 -m local --data-root docs/examples/data
"""

from __future__ import annotations

import zipfile

import numpy as np
from PIL import Image

from bench.data import Images
from bench.dataset import Dataset
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

PICTURES = RawFile(
    "shapes/shapes.zip",  # below a data root
    sha256="efdb619fda9c953d73b994dd3111c229fd92e87c77130976301480aa3bfe729d",
)


class Shapes(Dataset):
    """180 coloured circles, crosses and triangles, 16 x 16 pixels, 60 of each."""

    name = "shapes"
    title = "Shapes"
    family = "images"
    scenarios = ("dirichlet0.5", "pathological")
    protocol = Protocol(rounds=10, local_epochs=2, split=(70, 10, 20), initial="common")
    client = ClientSettings(model="cnn", optimizer="sgd", learning_rate=0.01, batch_size=16, dropout=0)
    files = (PICTURES,)

    def load(self, sources: Sources) -> Images:
        """Pixels ``[180, 3, 16, 16]``; a picture's class is the place of its folder among all, by name."""
        with zipfile.ZipFile(sources.get(PICTURES)) as archive:
            names = sorted(name for name in archive.namelist() if not name.endswith("/"))
            pictures = [np.asarray(Image.open(archive.open(name)).convert("RGB")) for name in names]
        folders = [name.split("/")[0] for name in names]
        classes, labels = np.unique(folders, return_inverse=True)
        pixels = np.stack(pictures).transpose(0, 3, 1, 2)  # channels first
        return Images(pixels, labels.astype(np.int64), len(classes))
