"""Several tensors into parts of one new tensor, by as few launches as can be.

What a first call found out (which launches, and how far into the result each begins) is remembered
by what tensors are but for their addresses. Later calls on a GPU make the result, and launch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from warploom.catalogue.permute.call import copied, device_of
from warploom.catalogue.permute.launched import OUT_MASK, bundle_on_host, bundled
from warploom.catalogue.permute.problem import WIDEST
from warploom.catalogue.permute.several import bundles
from warploom.runtime.callable import Device
from warploom.runtime.library import READERS, bits_of, blank, library, reader_of
from warploom.runtime.view import View, view

REMEMBERED = 1024
Known = tuple[Hashable, list[int]]  # what a call is but for addresses, and these
Again = Callable[[Sequence[Any], list[int]], Any]


def known_as(parts: Sequence[Any], how: Hashable) -> Known | None:
    """What a call of this kind on these tensors is; None where a tensor is not read that way."""
    keys: list[Hashable] = []
    pointers: list[int] = []
    for each in parts:
        reader = READERS.get(each.__class__) or reader_of(each)
        if reader is None:
            return None
        try:
            key, pointer = reader(each)
        except (RuntimeError, TypeError, AttributeError):  # it has no memory: the long way says so
            return None
        keys += [key, pointer % WIDEST]
        pointers.append(pointer)
    return (how, *keys), pointers


def again(known: Known | None, parts: Sequence[Any]) -> Any:
    """The result by an earlier plan; None if there is none."""
    if known is None:
        return None
    try:
        plan = _plans.get(known[0])
    except TypeError:  # an axis that is not hashed is none
        return None
    return None if plan is None else plan(parts, known[1])


def remember(known: Known, plan: Again) -> None:
    """Later calls of this kind go by a plan; one that gives None goes the long way."""
    if len(_plans) >= REMEMBERED:
        _plans.clear()
    _plans[known[0]] = plan


def together(
    known: Known | None,
    parts: Sequence[Any],
    shape: tuple[int, ...],
    targets: Callable[[Any], Sequence[Any]],
    device: Device,
) -> Any:
    """A new tensor, whose `targets` are views of it: where each of the parts goes."""
    out = blank(parts[0], shape)
    begin = seen(out).pointer
    views, found = [seen(each) for each in parts], []
    for number, (source, target) in enumerate(zip(views, targets(out), strict=True)):
        to = seen(target)
        found += [(each, number, to.pointer - begin) for each in copied(source, to, device)]
    where, made, pointers = device_of(views[0], device), bundles(found), [v.pointer for v in views]
    if where != "cuda":
        for bundle in made:
            bundle_on_host(bundle, where, pointers, begin)
        return out
    launches = [bundled(bundle, views[0].device) for bundle in made]
    stream = library(parts[0]).stream(views[0].device)
    for launch in launches:
        launch(pointers, begin, stream())
    if known is not None and not any(each.tracked for each in views) and not begin & OUT_MASK:
        remember(known, _again(launches, shape, library(parts[0]).pointer, stream))
    return out


def seen(array: Any) -> View:
    bits = bits_of(array)
    return view(array if bits is None else bits(array), "parts")


def _again(
    launches: Sequence[Callable[[Sequence[int], int, int], None]],
    shape: tuple[int, ...],
    address: Callable[[Any], int],
    stream: Callable[[], int],
) -> Again:
    def call(parts: Sequence[Any], pointers: list[int]) -> Any:
        out = blank(parts[0], shape)
        begin = address(out)
        if begin & OUT_MASK:  # kernels are made for where their part of the result begins
            return None
        where = stream()
        for launch in launches:
            launch(pointers, begin, where)
        return out

    return call


_plans: dict[Hashable, Again] = {}
