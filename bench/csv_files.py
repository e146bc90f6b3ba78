"""Frames as CSV files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a frame as CSV, fractions with four decimals; equal frames give equal bytes."""
    table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")
