"""Values as JavaScript that is safe in a script of its own and inside a page."""

from __future__ import annotations

import json
from typing import Any

ESCAPES = tuple((sign, f"\\u{ord(sign):04x}") for sign in "<>&'")


def script_json(value: Any) -> str:
    """Compact JSON in ASCII without a sign that means something to HTML: ``<`` is written ``\\u003c``.

    U+2028 and everything else beyond ASCII is escaped, too. Raises ``ValueError`` on NaN or infinity.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign, escape in ESCAPES:  # several times faster than str.translate
        text = text.replace(sign, escape)
    return text


def call(function: str, *arguments: Any) -> str:
    """A script that calls a function of ``assets/board.js``."""
    return f"{function}({','.join(map(script_json, arguments))});\n"
