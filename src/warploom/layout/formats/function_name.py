"""Names of functions that texts define, made from what the texts are for: several then stand in one
file."""

from __future__ import annotations

import hashlib
import re

MOST = 60  # letters; longer names end in a digest of the whole


def function_name(kind: str, what: str) -> str:
    """An identifier that says what it is for.

    >>> function_name("place", "transpose:32x32:f32")
    'place_transpose_32x32_f32'
    """
    signed = re.sub(r"(?<!\w)-(?=\d)", "minus_", what)  # signs tell layouts apart
    words = re.sub(r"[^A-Za-z0-9]+", "_", signed).strip("_")
    plain = f"{kind}_{words}" if words else kind
    if len(plain) <= MOST and what.isascii():
        return plain
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    return f"{plain[: MOST - 9].rstrip('_')}_{digest}"
