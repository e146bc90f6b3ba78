"""Reads foreign pickles of plain containers, NumPy arrays and SciPy CSR matrices, and nothing else."""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

_RECONSTRUCT = np.zeros(0).__reduce__()[0]  # what every pickled array calls

_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("scipy.sparse.csr", "csr_matrix"): sparse.csr_matrix,
    ("scipy.sparse._csr", "csr_matrix"): sparse.csr_matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which data has no need of")
        return _ALLOWED[module, name]


def read_pickle(path: Path) -> Any:
    """Read the object in the file. Texts and arrays of Python 2 are read as Latin-1.

    Raises:
        UnpicklingError: the pickle has anything but containers, NumPy arrays and CSR matrices. Nothing of it
            is executed then.
    """
    with path.open("rb") as file:
        return _Restricted(file, encoding="latin1").load()


def csr(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Make a new, validated float32 CSR matrix. Old pickles lack attributes that SciPy expects today."""
    parts = (matrix.data.astype(np.float32), matrix.indices, matrix.indptr)
    copy = sparse.csr_matrix(parts, shape=matrix.shape)
    copy.check_format(full_check=True)
    return copy
