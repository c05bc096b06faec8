"""What is decided in a candidate, as plain data, and back from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warploom.errors import CheckError
from warploom.search.branching.candidate import Candidates, Decision, domain_of
from warploom.search.outcome_json import Record
from warploom.search.propagate.propagator import Propagator


def decisions_of(propagator: Propagator, candidates: Candidates, row: int) -> list[Decision]:
    """What has been decided in a candidate beyond the root: taking these decisions again gives the
    same candidate."""
    found = []
    root = propagator.root()
    for choice in propagator.space.choices:
        for position, instance in enumerate(choice.instances, propagator.columns(choice).start):
            bits = int(candidates.domains[row, position])
            if bits != int(root.domains[0, position]):
                domain = domain_of(choice, bits)
                values = (*domain.values, None) if domain.may_be_absent else domain.values
                found.append(Decision(choice.name, tuple(map(str, instance)), values))
    return found


def independent(
    propagator: Propagator, decisions: Sequence[Decision], known: Sequence[Decision] = ()
) -> list[Decision]:
    """The decisions that do not follow from those before them and from the `known` ones: few, and
    together they say the same."""
    here, found = propagator.root(known), list[Decision]()
    for each in decisions:
        position, bits = propagator.place(each)
        if not len(here) or not int(here.domains[0, position]) & ~bits:
            continue
        found.append(each)
        allowed = np.array([bits], np.uint64)
        zero = np.zeros(1, np.int64)
        here = here.take(propagator.restrict(here, zero, zero + position, allowed))
    return found


def decision_record(decision: Decision) -> Record:
    return {
        "choice": decision.choice,
        "objects": list(decision.objects),
        "values": list(decision.values),
    }


def decision_from(record: Mapping[str, Any]) -> Decision:
    """The decision that `decision_record` wrote."""
    match record:
        case {"choice": str(choice), "objects": [*objects], "values": [*values]}:
            named = all(isinstance(item, str) for item in objects)
            known = all(isinstance(v, str | int | None) and not isinstance(v, bool) for v in values)
            if named and known:
                return Decision(choice, tuple(objects), tuple(values))
    raise CheckError(f"not the record of a decision: {record!r}")
