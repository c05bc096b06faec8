"""Colours of pictures, light and dark, as CSS: ramps that grow lighter or darker all the way (so
that they can be told apart without hue), and a few kinds of things. `tests/report` measures that
text has at least 4.5:1 and marks at least 3:1 in both themes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

Colour: TypeAlias = tuple[int, int, int]
Theme: TypeAlias = Literal["light", "dark"]
THEMES: tuple[Theme, Theme] = ("light", "dark")

SHADES = 24  # classes k0 … of the ramp: where in memory a value comes from
HEATS = 9  # classes h0 … of the heat maps: how much

# Kinds of things, by class; the same order everywhere.
KINDS = ("stays", "lane", "across", "folds", "memory", "none", "wrong")

LEVELS = ("global", "shared", "thread", "vector", "serial")

# What a page is drawn with: `ink` and `soft` are text, `line` and the others are marks.
TOKENS: dict[Theme, dict[str, str]] = {
    "light": {
        "page": "#ffffff", "panel": "#f4f5f8", "raised": "#ffffff", "ink": "#16191d",
        "soft": "#525a65", "line": "#858d98", "faint": "#d9dde3", "accent": "#0a55a8",
        "on-accent": "#ffffff", "lit": "#fdeec2", "trace": "#c2006b", "good": "#0f6b3a",
        "bad": "#b3261e", "stays": "#6b7480", "lane": "#0067a3", "across": "#b34a00",
        "folds": "#00734f", "memory": "#8a3a7c", "none": "#767676", "wrong": "#b3261e",
        "shared": "#0067a3", "global": "#b34a00", "thread": "#00734f",
        "vector": "#8a3a7c", "serial": "#6b7480",
    },
    "dark": {
        "page": "#0e1217", "panel": "#171c23", "raised": "#1d242d", "ink": "#e9edf2",
        "soft": "#a9b3bf", "line": "#75808d", "faint": "#2d3640", "accent": "#7cbcff",
        "on-accent": "#06121f", "lit": "#4a3b10", "trace": "#ff83bf", "good": "#63d297",
        "bad": "#ff9a8f", "stays": "#8f99a5", "lane": "#56b4e9", "across": "#f0a030",
        "folds": "#33c491", "memory": "#dd8fce", "none": "#8d96a0", "wrong": "#ff9a8f",
        "shared": "#56b4e9", "global": "#f0a030", "thread": "#33c491",
        "vector": "#dd8fce", "serial": "#8f99a5",
    },
}  # fmt: skip

_PLASMA: tuple[Colour, ...] = (
    (13, 8, 135), (65, 4, 157), (106, 0, 168), (143, 13, 164), (177, 42, 144), (204, 71, 120),
    (225, 100, 98), (242, 132, 75), (252, 166, 54), (252, 206, 37), (240, 249, 33),
)  # fmt: skip
# The part of it that stands out from the page.
_PART: dict[Theme, tuple[float, float]] = {"light": (0.0, 0.6), "dark": (0.46, 1.0)}
# Heat begins close to the page, where nothing is, and ends far from it.
_HEAT: dict[Theme, tuple[Colour, Colour]] = {
    "light": ((108, 136, 182), (12, 38, 92)),
    "dark": ((74, 118, 178), (214, 232, 255)),
}


def rgb(text: str) -> Colour:
    """
    >>> rgb("#0a55a8")
    (10, 85, 168)
    """
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def hexadecimal(colour: Colour) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)


def luminance(colour: Colour) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [part / 255 for part in colour]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    """
    >>> round(contrast((0, 0, 0), (255, 255, 255)))
    21
    """
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def text_on(colour: Colour) -> Colour:
    """Black or white, whichever is read better; one of them always has 4.5:1."""
    black, white = (0, 0, 0), (255, 255, 255)
    return max(black, white, key=lambda ink: contrast(ink, colour))


def _between(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def shade(theme: Theme, number: int) -> Colour:
    """Colour `number` of the ramp."""
    first, last = _PART[theme]
    at = (first + (last - first) * number / (SHADES - 1)) * (len(_PLASMA) - 1)
    low = min(int(at), len(_PLASMA) - 2)
    return _between(_PLASMA[low], _PLASMA[low + 1], at - low)


def heat(theme: Theme, number: int) -> Colour:
    first, last = _HEAT[theme]
    return _between(first, last, number / (HEATS - 1))


def shade_of(place: int, places: int) -> int:
    """The class of the ramp for one of so many places, in order."""
    return 0 if places < 2 else place * (SHADES - 1) // (places - 1)


def heat_of(amount: int, most: int) -> int:
    return 0 if most < 2 else (amount - 1) * (HEATS - 1) // (most - 1)


def filled(theme: Theme) -> Iterator[tuple[str, Colour]]:
    """Every class that fills a cell that may have text on it."""
    yield from ((f"k{number}", shade(theme, number)) for number in range(SHADES))
    yield from ((f"h{number}", heat(theme, number)) for number in range(HEATS))
    yield from ((kind, rgb(TOKENS[theme][kind])) for kind in KINDS)
    yield from ((kind, rgb(TOKENS[theme][kind])) for kind in LEVELS)


def css(theme: Theme, scope: str) -> str:
    """Tokens and filled classes for everything inside `scope`, a selector."""
    tokens = ";".join(f"--{name}:{value}" for name, value in TOKENS[theme].items())
    fills = "".join(
        f"--{name}-fill:{hexadecimal(colour)};--{name}-text:{hexadecimal(text_on(colour))};"
        for name, colour in filled(theme)
    )
    return f"{scope}{{color-scheme:{theme};{tokens};{fills}}}\n"


def classes() -> str:
    """What the classes of cells look like, in HTML and in SVG alike."""
    names = dict(filled("light"))
    return "".join(
        f".{name}{{background:var(--{name}-fill);fill:var(--{name}-fill);"
        f"color:var(--{name}-text)}}svg.figure .{name}+text.on{{fill:var(--{name}-text)}}\n"
        for name in names
    )


def stylesheet() -> str:
    """Both themes: the reader's own, unless the page was told another."""
    dark = css("dark", ":root:not([data-theme=light])")
    return (
        css("light", ":root")
        + f"@media (prefers-color-scheme:dark){{{dark}}}\n"
        + css("dark", ":root[data-theme=dark]")
        + classes()
    )
