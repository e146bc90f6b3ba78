"""Make the pictures of the documentation anew: pictures.py REPORT SITE.

``docs/findings/STUDY_DOCUMENT_FIGURE.png`` is ``REPORT/STUDY/DOCUMENT/FIGURE.png`` in 256 colours, and
``docs/leaderboard.png`` the front page of SITE, which needs Chromium on the path and stays as it is without.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path("docs")
WINDOW = "1280,1010"
"""Width and height of the picture of the front page, in pixels."""


def figure(report: Path, name: str) -> Path:
    """The report's figure of this name; the document is the longest whose name it begins with."""
    study, _, rest = name.partition("_")
    documents = sorted((path.name for path in (report / study).iterdir() if path.is_dir()), key=len)
    for document in reversed(documents):
        path = report / study / document / f"{rest.removeprefix(f'{document}_')}.png"
        if rest.startswith(f"{document}_") and path.is_file():
            return path
        path = report / study / document / f"{document}.png"
        if rest == document and path.is_file():
            return path
    sys.exit(f"docs/findings/{name}.png: no figure of the report is of that name")


def write(source: Path, target: Path) -> bool:
    """Write a picture in 256 colours; whether that changes what is there."""
    with Image.open(source) as image:
        small = image.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    before = target.read_bytes() if target.exists() else b""
    small.save(target, optimize=True)
    return target.read_bytes() != before


def main() -> None:
    """Write every picture, and say which are new."""
    report, site = map(Path, sys.argv[1:])
    pictures = sorted((DOCS / "findings").glob("*.png"))
    new = [path.name for path in pictures if write(figure(report, path.stem), path)]
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        print("no Chromium on the path: docs/leaderboard.png stays as it is")
    else:
        with tempfile.TemporaryDirectory() as scratch:
            shot = Path(scratch) / "front.png"
            subprocess.run(
                [
                    browser,
                    "--headless",
                    "--no-sandbox",
                    "--hide-scrollbars",
                    f"--window-size={WINDOW}",
                    f"--screenshot={shot}",
                    (site / "index.html").resolve().as_uri(),
                ],
                check=True,
                capture_output=True,
            )
            if write(shot, DOCS / "leaderboard.png"):
                new.append("leaderboard.png")
    print(f"pictures written anew: {', '.join(new) or 'none'}")


if __name__ == "__main__":
    main()
