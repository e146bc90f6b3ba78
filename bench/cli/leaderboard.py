"""``bench leaderboard``: the results as a site that can be shared."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cyclopts import App

from bench.cli.options import Database, Own, Shipped
from bench.errors import RequestError

app = App(name="leaderboard", help="Write the results as a site, or serve it on this machine.")


@app.command
def build(
    *, out: Path = Path("site"), db: Database = None, own: Own = False, shipped: Shipped = False
) -> None:
    """Write a folder of pages in place of an earlier one; open its index.html, or put it on a web server."""
    from bench.engine.methods import METHODS
    from bench.site import folder, leaderboard
    from bench.studies.shipped import opened_results
    from bench.studies.study import STUDIES

    folder.check(out, folder.LEADERBOARD)  # before everything is read, which takes longer
    with opened_results(db, own, shipped=shipped) as source:
        site = leaderboard.build(source, STUDIES.all(), METHODS.all(), out)
    print(f"{site.runs:,} runs in {site.files:,} files, {site.bytes / 1e6:.1f} MB: {out / 'index.html'}")


@app.command
def serve(
    *,
    port: int = 8000,
    out: Path | None = None,
    db: Database = None,
    own: Own = False,
    shipped: Shipped = False,
) -> None:
    """Serve the site at http://127.0.0.1:PORT, to this machine alone, until interrupted.

    Args:
        port: Port; 0 takes a free one.
        out: Serve this site as it is; default: build one in a temporary folder.
    """
    if out is not None and (db is not None or own or shipped):
        raise RequestError("--out serves a site as it is: leave --db, --own and --shipped away, or --out")

    from bench.site.folder import server

    with tempfile.TemporaryDirectory(prefix="bench-leaderboard-") as folder:
        place = out or Path(folder) / "site"
        with server(place, port) as serving:
            if out is None:
                build(out=place, db=db, own=own, shipped=shipped)
            print(f"http://127.0.0.1:{serving.server_port}/ (Ctrl-C ends it)", flush=True)
            try:
                serving.serve_forever()
            except KeyboardInterrupt:
                print()
