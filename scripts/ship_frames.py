"""Write the frames of cells and ranks that come with the suite (``make frames``)."""

from bench.frames.whole_frames import SHIPPED_FOLDER, frames_of_studies
from bench.studies.shipped import opened_results

with opened_results(None, False, shipped=True) as source:
    frames = frames_of_studies(source)
for name, rows in frames.items():
    rows.to_parquet(SHIPPED_FOLDER / f"{name}.parquet", index=False, compression="zstd")
