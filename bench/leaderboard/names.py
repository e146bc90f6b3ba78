"""Names of files, made from names that anybody may have chosen."""

from __future__ import annotations

import hashlib
import re

PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def file_name(name: str) -> str:
    """A name for a file, without its ending: the name itself where that is harmless everywhere.

    Else what is left of it with a digest. The dot before the digest occurs in no plain name, so two
    names never share a file, on file systems that ignore case neither.
    """
    if PLAIN.fullmatch(name):
        return name
    left = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:40]
    return f"{left or 'x'}.{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"
