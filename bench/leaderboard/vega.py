"""The chart library, as a file named by its version and hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import version

PACKAGE = "vl-convert-python"


@dataclass(frozen=True)
class Library:
    """A script: the name of its file, its text, its title, and the package and version that brought it."""

    file: str
    text: str
    title: str
    package: str
    version: str
    sha256: str


def library() -> Library:
    """Vega, Vega-Lite and Vega-Embed, which set ``window.vegaEmbed`` and no other global name."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    text = f"(function () {{\n{bundle}\n}})();\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    release = vl_convert.get_vega_version()
    title = f"Vega {release} with Vega-Embed {vl_convert.get_vega_embed_version()}"
    return Library(f"vega-{release}-{digest[:12]}.js", text, title, PACKAGE, version(PACKAGE), digest)
