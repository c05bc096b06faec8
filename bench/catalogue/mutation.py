"""The mutation check of kernels of the catalogue, on all cores of this machine: the check of
`warploom kernel NAME --mutate`, each core a share of the mutants.

python -m bench.catalogue.mutation                                 the record, row by row; resumes
python -m bench.catalogue.mutation convolution-2d rows=4 block=32  one kernel, as JSON
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import partial
from multiprocessing import Pool

from bench.harness import RESULTS, ROOT, arguments, earlier, environment, save

from warploom.catalogue import entries, find
from warploom.catalogue.entry import Parameter
from warploom.catalogue.verify import mutation
from warploom.trust.mutation import Examination, Share, joined

RECORD = RESULTS / "mutation.json"
# Small enough to be run whole; a kernel that is not named here has its defaults.
SMALLER: dict[str, dict[str, Parameter]] = {"convolution-2d": {"rows": 4, "block": 32}}
STRATEGIES = ("shared", "direct")


def examined(name: str, settings: dict[str, Parameter], share: Share) -> Examination:
    return mutation(find(name), settings, share=share)


def row(name: str, settings: dict[str, Parameter]) -> dict[str, object]:
    count = os.cpu_count() or 1
    with Pool(count) as pool:
        shares = pool.map(
            partial(examined, name, settings), [(number, count) for number in range(count)]
        )
    given = find(name).settings(settings)
    return {"name": name, "settings": given, **joined(shares).as_dict()}


def wanted() -> list[tuple[str, dict[str, Parameter]]]:
    """Every kernel, and the strategies that are not the default of those that have several."""
    rows = []
    for name, entry in entries().items():
        smaller = SMALLER.get(name, {})
        others = STRATEGIES if "strategy" in entry.parameters else ()
        rows += [(name, smaller), *((name, {**smaller, "strategy": other}) for other in others)]
    return rows


def record() -> int:
    """Rows that the record has from these sources are kept; each new one is written at once."""
    sources = digest()
    known = earlier(RECORD)
    rows = known["kernels"] if known.get("sources") == sources else []
    survived = 0
    for name, settings in wanted():
        asked = " ".join([name, *(f"{key}={value}" for key, value in settings.items())])
        if not any(each["asked"] == asked for each in rows):
            rows.append({"asked": asked, **row(name, settings)})
            write(sources, rows)
        one = next(each for each in rows if each["asked"] == asked)
        survived += len(one["survived"])
        print(f"{asked}: {one['caught']} of {one['function_changing']} caught, "
              f"{one['equivalent']} of {one['mutants']} equivalent", flush=True)  # fmt: skip
    return 1 if survived else 0


def digest() -> str:
    """What the check depends on, so that a record of other sources is not taken for this one's."""
    files = sorted(path for path in (ROOT / "src").rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def write(sources: str, rows: list[dict[str, object]]) -> None:
    save(RECORD, {**environment(), "sources": sources, "kernels": rows})


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("words", nargs="*", help="NAME key=value…: this kernel alone")
    asked = parser.parse_args()
    if asked.words:
        name, *words = asked.words
        pairs = (word.partition("=") for word in words)
        one = row(name, {k: int(v) if v.isdigit() else v for k, _, v in pairs})
        print(json.dumps(one, indent=1))
        return 1 if one["survived"] else 0
    return record()


if __name__ == "__main__":
    raise SystemExit(main())
