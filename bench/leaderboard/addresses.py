"""Addresses of the site's pages, made from names that anybody may have chosen."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def file_name(name: str) -> str:
    """A name for a file, without its ending: the name itself where that is harmless everywhere.

    Else what is left of it with a digest. The dot before the digest occurs in no plain name, so two
    names never share a file, on file systems that ignore case neither.
    """
    if PLAIN.fullmatch(name):
        return name
    stem = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:40]
    return f"{stem or 'x'}.{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def board_page(study: str, dataset: str) -> str:
    """Address of a study's board on a data set, from the site's root as all others."""
    return f"board/{file_name(f'{study}-{dataset}')}.html"


def method_page(method: str) -> str:
    """Address of a method's page."""
    return f"method/{file_name(method)}.html"


def dataset_page(dataset: str) -> str:
    """Address of a data set's page."""
    return f"dataset/{file_name(dataset)}.html"


def pair_page(study: str, first: str, second: str) -> str:
    """Address of the page of two methods in a study, in either order."""
    return f"pair/{file_name('-'.join((study, *sorted((first, second)))))}.html"


def run_page(spec_hash: str) -> str:
    """Address of a run."""
    return f"run.html#{quote(spec_hash)}"
