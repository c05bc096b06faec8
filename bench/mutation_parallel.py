"""The mutation check of one kernel of the catalogue, on all cores of this machine: the check of
`warploom kernel NAME --mutate`, each core a share of the mutants. Prints the record as JSON.

python bench/mutation_parallel.py convolution-2d rows=4 block=32
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from multiprocessing import Pool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from warploom.catalogue import find
from warploom.catalogue.entry import Parameter
from warploom.catalogue.verify import mutation
from warploom.trust.mutation import Examination, Share, joined


def examined(name: str, settings: dict[str, Parameter], share: Share) -> Examination:
    return mutation(find(name), settings, share=share)


def main() -> int:
    name, *words = sys.argv[1:]
    pairs = (word.partition("=") for word in words)
    settings: dict[str, Parameter] = {k: int(v) if v.isdigit() else v for k, _, v in pairs}
    count = os.cpu_count() or 1
    with Pool(count) as pool:
        shares = pool.map(
            partial(examined, name, settings), [(number, count) for number in range(count)]
        )
    report = joined(shares)
    print(json.dumps({"name": name, "settings": settings, **report.as_dict()}, indent=1))
    return 1 if report.survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
