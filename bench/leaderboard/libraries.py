"""The table and chart libraries as classic scripts, from installed packages.

A page that is opened from disk may load classic scripts, but no modules. Both libraries come as one
file whose names must not become global: each is wrapped in a function that sets the one name used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files

EXPORT = re.compile(r"(?<![\w.$])export\s*\{([^{}]*)\}\s*;?")
EXPORTED = re.compile(r"\s*([\w$]+)\s+as\s+([\w$]+)\s*")


@dataclass(frozen=True)
class Library:
    """A library: the file's name, its text, what it is and the package that brought it."""

    file: str
    text: str
    title: str
    package: str

    @property
    def version(self) -> str:
        """Version of the package."""
        return version(self.package)


def classic(module: str, exported: str, name: str) -> str:
    """A JavaScript module as a classic script that sets ``window.NAME`` to one of its exports.

    Raises:
        RuntimeError: the module does not end in exactly one list of exports, or does not export that name.
    """
    found = list(EXPORT.finditer(module))
    if len(found) != 1:
        raise RuntimeError(f"expected one 'export {{...}}' in the bundle of {name}, found {len(found)}")
    pairs = [EXPORTED.fullmatch(part) for part in found[0][1].split(",")]
    names = {pair[2]: pair[1] for pair in pairs if pair}
    if exported not in names:
        raise RuntimeError(f"the bundle of {name} exports {', '.join(names)}, not {exported}")
    start, end = found[0].span()
    return wrapped(f"{module[:start]}window.{name}={names[exported]};{module[end:]}")


def wrapped(text: str) -> str:
    """A script whose own names stay its own."""
    return "(function () {\n" + text + "\n})();\n"


def datatables() -> tuple[Library, Library]:
    """DataTables with jQuery, as itables bundles them: script and style sheet."""
    folder = files("itables") / "html"
    script = (folder / "dt_bundle.js").read_text(encoding="utf-8")
    style = (folder / "dt_bundle.css").read_text(encoding="utf-8")
    return (
        Library("datatables.js", classic(script, "default", "DataTable"), "DataTables", "itables"),
        Library("datatables.css", style, "DataTables", "itables"),
    )


def vega() -> Library:
    """Vega, Vega-Lite and Vega-Embed, as vl-convert bundles them.

    Raises:
        RuntimeError: the bundle no longer sets ``window.vegaEmbed``.
    """
    from vl_convert import javascript_bundle

    text: str = javascript_bundle()  # type: ignore[call-arg]
    if "window.vegaEmbed=" not in text or EXPORT.search(text):
        raise RuntimeError("the bundle of vl-convert-python does not set window.vegaEmbed as it did")
    return Library("vega.js", wrapped(text), "Vega, Vega-Lite and Vega-Embed", "vl-convert-python")
