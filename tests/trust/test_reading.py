"""Bytes that two readers of JSON may read in two ways, or none: one error with its place."""

from __future__ import annotations

import json
import re

import pytest

from warploom.errors import ParseError
from warploom.trust.reading import read_certificates

REFUSED = {
    "a key twice": (b'[{"a": 1,\n  "kind": "x", "a": 2}]', "c:2:16: the key 'a' stands twice"),
    "a key twice inside": (b'{"a": {"b": 1, "b": 1}}', "c:1:16: the key 'b' stands twice"),
    "spelled otherwise": (b'{"a": 1, "\\u0061": 1}', "c:1:10: the key 'a' stands twice"),
    "no number": (b'{"a": NaN}', "c:1:7: NaN is no number that can be read"),
    "infinity": (b'{"a": [-Infinity]}', "c:1:8: -Infinity is no number that can be read"),
    "too large": (b'{"a": 1e400}', "c:1:7: 1e400 is no number that can be read"),
    "too long": (b'{"a": %s}' % (b"7" * 5000), "c:1:7: 7777777777"),
    "trailing": (b'{"a": 1} {"a": 2}', "c:1:10: not JSON: Extra data"),
    "cut off": (b'{"a": ', "c:1:7: not JSON: Expecting value"),
    "byte order mark": (b"\xef\xbb\xbf{}", "c:1:1: not JSON: a byte order mark"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "c is not JSON: byte 0 is no UTF-8"),
    "deep": (b"[" * 200_000, "c nests too deeply"),
    "nothing": (b"[]", "c holds no certificate"),
    "a number": (b"7", "c holds no certificate"),
    "empty": (b"", "c:1:1: not JSON: Expecting value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_place(name: str) -> None:
    data, message = REFUSED[name]
    with pytest.raises(ParseError) as found:
        read_certificates(data, "c")
    assert str(found.value).startswith(message)
    assert "a certificate is JSON as" in str(found.value)


def test_what_is_written_is_read() -> None:
    record = {"a": [1, 2.5, None, True], "b": {"a": -3}, 'key: "x", {': int(1e308)}
    for indent in (None, 1):
        assert read_certificates(json.dumps([record], indent=indent).encode(), "c") == [record]
    assert re.search("e308|000", json.dumps(record))
