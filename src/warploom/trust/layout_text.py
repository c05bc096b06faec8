"""The text of a layout in a certificate: does it say what the addresses say?

The checker takes addresses alone, and shares nothing with the room of layouts; who pastes the text
trusts that room to read it, and here it does.
"""

from __future__ import annotations

from typing import Any

from warploom.errors import WarploomError
from warploom.layout.formats.given import given_layout
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import sizes_of
from warploom.trust.checked import Checked, require
from warploom.trust.layout import check_layout


def check_layout_and_text(record: dict[str, Any]) -> Checked:
    """Raises CheckError at the first thing that is not so."""
    found = check_layout(record)
    text, shape = record["layout"], record["problem"]["shape"]
    require(isinstance(text, str), "it has no text of the layout")
    try:
        layout = given_layout(text)
        sizes = sizes_of(layout)
    except WarploomError as error:
        require(False, f"its text of the layout is none: {error.message}")
    require(list(sizes) == shape, f"its text is of {sizes} elements")
    table = values(layout).reshape(sizes[::-1]).T.ravel()  # the first coordinate fastest
    require(table.tolist() == record["addresses"], "its text is another layout")
    return found
