"""Pages stand alone, escape what they are given, and have colours that can be read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from tests.report.pages import data_of, found, impossible, page_of

from warploom import show
from warploom.errors import UnsupportedError
from warploom.pipeline.pictures import PICTURES, drawer
from warploom.report.page import embedded, page
from warploom.report.theme import THEMES, TOKENS, contrast, filled, rgb, text_on

PAGES = ("sums", "impossible")
# What a page may not have: anything that a browser would fetch.
FETCHED = re.compile(
    r"\bsrc=|@import|url\(|<link(?! rel=.icon. href=.data:,.)|https?:(?!//www\.w3\.org/2000/svg)"
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing(name: str) -> None:
    html = page_of(name).html
    assert FETCHED.findall(html) == []
    assert "default-src &#x27;none&#x27;" in html
    assert len(html.encode()) < 2_000_000


@pytest.mark.parametrize("name", PAGES)
def test_figures_are_well_formed_and_stand_alone(name: str) -> None:
    svgs = page_of(name).svgs
    assert svgs
    for text in svgs.values():
        ElementTree.fromstring(text)
        assert FETCHED.findall(text) == []
        assert "--page:#ffffff" in text


def sized(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def test_files_by_name(tmp_path: Path) -> None:
    drawn = page_of("sums")
    assert list(drawn.files(tmp_path / "a.html")) == [tmp_path / "a.html"]
    ((name, text),) = drawn.files(tmp_path / "a.svg").items()
    assert name == tmp_path / "a.svg"
    whole, parts = sized(text), [sized(each) for each in drawn.svgs.values()]
    assert sorted(drawn.svgs) == ["memory", "steps"]
    assert float(whole.attrib["height"]) > sum(float(each.attrib["height"]) for each in parts)
    inside = [each for each in whole if each.tag.endswith("svg")]
    first, second = (float(each.attrib["y"]) for each in inside)
    assert second - first >= float(inside[0].attrib["height"])
    page_of("impossible").save(tmp_path / "b.svg")
    assert (tmp_path / "b.svg").read_text().startswith("<svg")


def test_what_is_given_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    html = page(evil, evil, [(evil, evil, "")], [(evil, evil, "")], {"x": evil})
    assert evil not in html
    assert data_of(html) == {"x": evil}
    assert "</script>" not in embedded({"x": evil})[len("<script") : -len("</script>\n")]


def test_a_notebook_shows_a_record_without_a_script() -> None:
    for result in (found("sums"), impossible()):
        html = result._repr_html_()
        assert "<svg" in html
        assert "<script" not in html
    frame = show(found("sums"))._repr_html_()
    assert frame.startswith("<iframe srcdoc=")


def test_every_kind_in_the_registry_has_its_function() -> None:
    for name in PICTURES.values():
        module, _, function = name.partition(":")
        assert callable(getattr(__import__(module, fromlist=[function]), function))
    with pytest.raises(UnsupportedError, match="no picture of a int"):
        drawer(3)


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_marks_can_be_read(theme: str) -> None:
    tokens = {name: rgb(value) for name, value in TOKENS[theme].items()}  # type: ignore[index]
    grounds = [tokens[name] for name in ("page", "panel", "raised")]
    for ground in grounds:
        for name in ("ink", "soft", "accent", "good", "bad"):
            assert contrast(tokens[name], ground) >= 4.5, name
        for name in ("line", "trace"):
            assert contrast(tokens[name], ground) >= 3, name
        for name, colour in filled(theme):  # type: ignore[arg-type]
            assert contrast(colour, ground) >= 3, name
            assert contrast(colour, text_on(colour)) >= 4.5, name
    for name in ("ink", "soft"):
        assert contrast(tokens[name], tokens["lit"]) >= 4.5
    assert contrast(tokens["on-accent"], tokens["accent"]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_the_ramps_can_be_told_apart_without_hue(theme: str) -> None:
    """They grow lighter, or darker, all the way."""
    for letter in "kh":
        ramp = [c for name, c in filled(theme) if re.fullmatch(rf"{letter}\d+", name)]  # type: ignore[arg-type]
        light = [contrast(colour, (0, 0, 0)) for colour in ramp]
        assert light in (sorted(light), sorted(light, reverse=True))
        assert max(light) / min(light) > 3
