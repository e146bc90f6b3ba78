"""Write the frames of cells and ranks that come with the suite (``make frames``).

The files are not compressed: git then stores only the difference between two versions.
"""

import pandas as pd

from bench.frames.whole_frames import SHIPPED_FOLDER, frames_of_studies
from bench.studies.shipped import opened_results

with opened_results(None, False, shipped=True) as source:
    frames = frames_of_studies(source)
for name, rows in frames.items():
    texts = [column for column in rows if not pd.api.types.is_float_dtype(rows[column])]
    file = SHIPPED_FOLDER / f"{name}.parquet"
    rows.to_parquet(file, index=False, compression=None, use_dictionary=texts)
