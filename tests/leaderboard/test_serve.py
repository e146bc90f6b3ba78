"""The site by HTTP."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from bench.errors import RequestError
from bench.leaderboard.folder import HOST, server


def test_the_server_answers_this_machine_alone(site: Path) -> None:
    with server(site, 0) as serving:
        assert serving.server_address[0] == HOST == "127.0.0.1"
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            with urlopen(f"http://{HOST}:{serving.server_port}/index.html", timeout=10) as answer:
                assert answer.read() == (site / "index.html").read_bytes()
            with pytest.raises(RequestError, match="cannot be used"):
                server(site, serving.server_port)
        finally:
            serving.shutdown()
            thread.join()
