"""An entry of the catalogue that also does several at a time: axes in front of its own.

With `images=1` the kernel has a scalar `images`; arrays with more axes than the entry is about ask
for it by themselves.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from warploom.catalogue.entry import Arrays, Entry, Fit, Parameter, Parameters, Shapes, Size, Values
from warploom.errors import CheckError
from warploom.kernel.batch import batched
from warploom.kernel.ir import Kernel
from warploom.machine.record import Machine

IMAGES = "images"


def with_batches(entry: Entry, many: tuple[str, str], axes: int) -> Entry:
    """The entry, of which `many` (input and output) there may be several, each of so many axes."""
    source, target = many
    fit_one = entry.fit
    assert fit_one is not None

    def build(images: int = 0, **given: Any) -> Kernel:
        if images not in (0, 1):
            raise CheckError(f"images={images}", advice="1: as many as the arrays have; 0: one")
        one = entry.build(**given)
        return batched(one, IMAGES) if images else one

    def inputs(size: Size, random: np.random.Generator, **given: Any) -> Values:
        one = {key: value for key, value in size.items() if key != IMAGES}
        drawn = [entry.inputs(one, random, **given) for _ in range(size.get(IMAGES, 1))]
        together = {source: np.concatenate([np.asarray(each[source]) for each in drawn])}
        return {**drawn[0], **size, **together}

    def specification(values: Values, **given: Any) -> Arrays:
        parts = np.split(np.asarray(values[source]), int(values.get(IMAGES, 1)))
        found = [entry.specification({**values, source: part}, **given) for part in parts]
        return {target: np.concatenate([each[target] for each in found])}

    def sizes(images: int = 0, **given: Any) -> list[dict[str, int]]:
        one = entry.sizes(**given)
        return [{**each, IMAGES: 1 + n % 3} for n, each in enumerate(one)] if images else one

    def fit(shapes: Shapes, **given: Any) -> Fit:
        outer = shapes[source][:-axes]
        own = fit_one({**shapes, source: shapes[source][-axes:]}, **given)
        if not outer:
            return own
        outputs = {**own.outputs, target: (*outer, *own.outputs[target])}
        return Fit({**own.scalars, IMAGES: math.prod(outer)}, outputs)

    def choose(settings: Parameters, size: Size | None, machine: Machine) -> dict[str, Parameter]:
        chosen = entry.choose(settings, size, machine)
        return {**chosen, IMAGES: 1} if size is not None and IMAGES in size else chosen

    return replace(
        entry,
        parameters={**entry.parameters, IMAGES: 0},
        build=build,
        inputs=inputs,
        specification=specification,
        sizes=sizes,
        fit=fit,
        choose=choose,
    )
