"""Device functions on a GPU: right for every type and length, and how fast beside CUB's.

    python -m bench.catalogue.functions_device        on a machine with a GPU, nvcc, NumPy and CuPy
    python -m bench.catalogue.functions_device --dry  compiles everything (with nvcc), runs nothing

Right: structures of 2 to 16 fields of 1, 2, 4, 8 and 16 bytes are loaded, exchanged in registers
and in shared memory, there and back, and stored, by whole warps and where lanes are missing;
matrices are transposed; scans of several types and operators. No kernel may use local memory.

Fast: data in registers, a loop of exchanges that fills the GPU, so that instructions are measured
and not memory: ours in registers (crc, rcr) and through shared memory, beside cub::WarpExchange and
a plain exchange through shared memory; scans beside cub::WarpScan. Records are kept after every
row, and rows that are there are not done again.
"""

from __future__ import annotations

import multiprocessing
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from bench.harness import arguments, attempted, earlier, environment, save

from warploom import device_function
from warploom.runtime.compile import Compiled, compile_cuda, parse_usage

FIELDS = tuple(range(2, 17))
TYPES = {1: "signed char", 2: "short", 4: "float", 8: "double", 16: "Wide"}
WIDE = "struct alignas(16) Wide { float x; int y; double z; };\n"
BLOCK, ITERATIONS, SAMPLES = 256, 2000, 15
KINDS = ("scan", "exchange", "move", "functions")
SCANS = (("float32", "+"), ("int32", "+"), ("float64", "+"), ("int64", "+"), ("int32", "max"))
C_TYPES = {"float32": "float", "int32": "int", "float64": "double", "int64": "long long"}


# -- texts -----------------------------------------------------------------------------------------


def exchanges(registers: int) -> str:
    texts = []
    for name in ("blocked-to-striped", "striped-to-blocked"):
        for order in ("crc", "rcr"):
            text = device_function(name, registers=registers, order=order).text()
            plain = f"{name.replace('-', '_')}_{registers}"
            texts.append(
                re.sub(rf"\b{plain}(_words)?\b", rf"{plain}_{order}\1", text).replace(
                    f"WARPLOOM_{plain.upper()}", f"WARPLOOM_{plain}_{order}"
                )
            )
        texts.append(device_function(name, registers=registers, through="shared").text())
    return "".join(texts)


def moving_text(fields: int) -> str:
    """Kernels that load, exchange and store, for each type."""
    names = ("load-structures", "store-structures")
    text = WIDE + "".join(device_function(name, fields=fields).text() for name in names)
    text += exchanges(fields)
    for size, kind in TYPES.items():
        text += f"""
extern "C" __global__ void move_{size}(const {kind}* x, {kind}* y, int n) {{
  __shared__ {kind} rooms[4][{34 * fields}];
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32;
  {kind}* room = rooms[threadIdx.x / 32];
  {kind} a[{fields}];
  load_structures_{fields}(x, n, first, a);
  if (__activemask() == 0xffffffffu) {{
    blocked_to_striped_{fields}_crc(a);
    striped_to_blocked_{fields}_shared(room, a);
    blocked_to_striped_{fields}_rcr(a);
    striped_to_blocked_{fields}_crc(a);
    blocked_to_striped_{fields}_shared(room, a);
    striped_to_blocked_{fields}_rcr(a);
  }}
  store_structures_{fields}(y, n, first, a);
}}
"""
    return text


def timing_text(registers: int) -> str:
    """One kernel for each way to exchange, in each direction."""
    cells = 32 * registers
    text = "#include <cub/warp/warp_exchange.cuh>\n" + exchanges(registers)
    for direction, cub in (
        ("blocked_to_striped", "BlockedToStriped"),
        ("striped_to_blocked", "StripedToBlocked"),
    ):
        name = f"{direction}_{registers}"
        blocked, striped = f"lane * {registers} + j", "j * 32 + lane"
        put, get = (blocked, striped) if direction.startswith("b") else (striped, blocked)
        plain = f"""
#pragma unroll
      for (int j = 0; j < {registers}; ++j) room[{put}] = a[j];
      __syncwarp();
#pragma unroll
      for (int j = 0; j < {registers}; ++j) a[j] = room[{get}];
      __syncwarp();"""
        ways = {
            "ours_crc": ("", f"{name}_crc(a);"),
            "ours_rcr": ("", f"{name}_rcr(a);"),
            "ours_shared": (_rooms(34 * registers), f"{name}_shared(room, a);"),
            "plain_shared": (_rooms(cells), plain),
            "cub": (
                f"typedef cub::WarpExchange<unsigned, {registers}> Exchange;\n"
                f"  __shared__ typename Exchange::TempStorage storage[{BLOCK // 32}];",
                f"Exchange(storage[threadIdx.x / 32]).{cub}(a, a); __syncwarp();",
            ),
        }
        for way, (declared, iteration) in ways.items():
            text += _loop(f"{direction}_{way}", "unsigned", registers, declared, iteration)
    return text


def scan_text(dtype: str, operator: str) -> str:
    kind = C_TYPES[dtype]
    text = "#include <cub/warp/warp_scan.cuh>\n#include <cuda/functional>\n"
    functor = {"+": "::cuda::std::plus<>{}", "max": "::cuda::maximum<>{}"}[operator]
    for form, call in (("inclusive", "Inclusive"), ("exclusive", "Exclusive")):
        header = device_function(f"{form}-scan", dtype=dtype, operator=operator)
        text += header.text()
        cub = f"Scan(storage[threadIdx.x / 32]).{call}Scan(a[0], a[0], {functor});"
        if operator == "+":
            cub = f"Scan(storage[threadIdx.x / 32]).{call}Sum(a[0], a[0]);"
        elif form == "exclusive":
            cub = cub.replace(f"a[0], {functor}", f"a[0], -2147483647 - 1, {functor}")
        declared = (
            f"typedef cub::WarpScan<{kind}> Scan;\n"
            f"  __shared__ typename Scan::TempStorage storage[{BLOCK // 32}];"
        )
        text += _loop(f"{form}_ours", kind, 1, "", f"{header.name}(a);")
        text += _loop(f"{form}_cub", kind, 1, declared, cub)
    return text


def _rooms(cells: int) -> str:
    return (
        f"__shared__ unsigned rooms[{BLOCK // 32}][{cells}];\n"
        "  unsigned* room = rooms[threadIdx.x / 32];"
    )


def _loop(name: str, kind: str, registers: int, declared: str, iteration: str) -> str:
    return f"""
extern "C" __global__ void __launch_bounds__({BLOCK}) {name}({kind}* out, int iterations) {{
  {declared}
  const int lane = threadIdx.x % 32;
  {kind} a[{registers}];
#pragma unroll
  for (int j = 0; j < {registers}; ++j) a[j] = ({kind})(lane * {registers} + j);
#pragma unroll 1
  for (int iteration = 0; iteration < iterations; ++iteration) {{
    {iteration}
  }}
#pragma unroll
  for (int j = 0; j < {registers}; ++j)
    out[((blockIdx.x * {BLOCK} + threadIdx.x) / 32 * 32 + lane) * {registers} + j] = a[j];
  (void)lane;
}}
"""


# -- the machine -----------------------------------------------------------------------------------


def built(text: str) -> tuple[Compiled, dict[str, Any]]:
    """Machine code by nvcc, and what the assembler says of each kernel."""
    options: tuple[str, ...] = ("-Xptxas", "-v", "-Werror", "all-warnings")
    options = options if "cub/" not in text else options[:2]
    made = compile_cuda(text, "sm_90", kind="cubin", compiler="nvcc", options=options)
    used = {
        name: {"registers": each.registers, "local": each.stack_bytes + each.spill_stores}
        for name, each in parse_usage(made.log).items()
    }
    return made, used


def made_of(make: Callable[..., str], given: tuple[Any, ...]) -> tuple[Compiled, dict[str, Any]]:
    """A text written and compiled, in a process of its own."""
    return built(make(*given))


def instructions(made: Compiled) -> dict[str, dict[str, int]]:
    """How often each kernel has instructions that share a pipe, if there is a disassembler."""
    tool = shutil.which("cuobjdump") or shutil.which("nvdisasm")
    if tool is None:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.code)
        file.flush()
        flags = ["-sass"] if tool.endswith("cuobjdump") else ["-c"]
        text = subprocess.run([tool, *flags, file.name], capture_output=True, text=True).stdout
    found: dict[str, dict[str, int]] = {}
    for part in re.split(r"(?:Function : |\.text\.)", text)[1:]:
        name = re.match(r"\w+", part)
        kinds = Counter(re.findall(r"\b(SHFL|SEL|FSEL|LDS|STS|PRMT|WARPSYNC|LDL|STL)\b", part))
        if name and kinds:
            found[name[0]] = dict(kinds)
    return found


class Machine:
    """Arrays and launches, by CuPy and our own driver."""

    def __init__(self) -> None:
        import cupy

        from warploom.runtime.driver import open_driver
        from warploom.runtime.measure import clock

        self.cupy, self.driver, self.timer = cupy, open_driver(), clock("cupy")
        self.properties = cupy.cuda.runtime.getDeviceProperties(0)

    def launch(self, made: Compiled, name: str, grid: int, block: int, arguments: list[Any]) -> Any:
        from warploom.runtime.gpu import Loaded

        loaded = Loaded(self.driver.load(made.code, name, 0))
        given = [each.data.ptr if hasattr(each, "data") and hasattr(each.data, "ptr") else each
                 for each in arguments]  # fmt: skip
        return loaded.bind((grid, 1, 1), (block, 1, 1), given)

    def seconds(self, launch: Any) -> float:
        from warploom.runtime.measure import measure

        return measure([launch], samples=SAMPLES, timer=self.timer).median


# -- rows ------------------------------------------------------------------------------------------


def check_moves(machine: Machine, made: Compiled, fields: int) -> list[str]:
    random = np.random.default_rng(fields)
    wrong = []
    for size in TYPES:
        # The last two are one block each, in whose last warp lanes are missing.
        for n, block in ((1, 32), (31, 32), (1000, 128), (100_003, 128), (40, 40), (17, 20)):
            x = random.integers(0, 256, n * fields * size, np.uint8)
            there, y = machine.cupy.asarray(x), machine.cupy.zeros(len(x) + 256, np.uint8)
            arguments = [there, y, np.int32(n)]
            machine.launch(made, f"move_{size}", -(-n // block), block, arguments)()
            got = machine.cupy.asnumpy(y)
            if not ((got[: len(x)] == x).all() and not got[len(x) :].any()):
                wrong.append(f"{size} bytes, n = {n}, blocks of {block}")
    return wrong


def check_functions(machine: Machine) -> dict[str, list[str]]:
    """Transpositions and scans, by the kernels that call their headers."""
    from warploom.runtime.callable import load

    found: dict[str, list[str]] = {}
    cases: list[tuple[str, dict[str, Any]]] = [
        *(("transpose", {"rows": m, "columns": n})
          for m, n in ((8, 8), (32, 5), (12, 7), (32, 32))),
        *((name, {"dtype": d, "operator": op, "registers": r, "lanes": lanes})
          for name in ("inclusive-scan", "exclusive-scan")
          for d, op, r, lanes in (
              ("float32", "+", 1, 32), ("int32", "+", 3, 32), ("float64", "max", 1, 32),
              ("int64", "*", 2, 16), ("uint32", "^", 1, 12), ("uint8", "min", 4, 32))),
    ]  # fmt: skip
    for name, given in cases:
        header = device_function(name, **given)
        called = header.template
        function = load(called.kernel, "cuda", calls=True)
        wrong = []
        for seed, count in enumerate((1, 7, 1000)):
            case = called.entry.case(called.kernel, {"count": count}, seed, **called.settings)
            arguments = [
                machine.cupy.asarray(each) if isinstance(each, np.ndarray) else each
                for each in case.fresh()
            ]
            function(*arguments)
            back = [machine.cupy.asnumpy(each) if hasattr(each, "get") else each
                    for each in arguments]  # fmt: skip
            if not called.entry.agrees(called.kernel, case, back):
                wrong.append(f"count = {count}")
        found[" ".join([name, *(f"{k}={v}" for k, v in given.items())])] = wrong
    return found


def timed(machine: Machine, made: Compiled, names: list[str], registers: int, size: int) -> Any:
    """Nanoseconds of one exchange of one warp, the GPU full; all must leave the same behind."""
    grid = machine.properties["multiProcessorCount"] * (2048 // BLOCK)
    items = grid * BLOCK * registers * size
    found: dict[str, float] = {}
    left: dict[str, bytes] = {}
    for name in names:
        out = machine.cupy.zeros(items, np.uint8)
        machine.launch(made, name, grid, BLOCK, [out, np.int32(3)])()
        left[name] = machine.cupy.asnumpy(out).tobytes()
        launch = machine.launch(made, name, grid, BLOCK, [out, np.int32(ITERATIONS)])
        warps = grid * BLOCK // 32
        found[name] = machine.seconds(launch) / ITERATIONS / warps * 1e9
    different = [name for name in names if left[name] != left[names[0]]]
    return {"ns": found, "different": different}


def compared(row: dict[str, Any], prefix: str, *, ours: str) -> float:
    mine = {k: v for k, v in row["ns"].items() if k.startswith(f"{prefix}_{ours}")}
    other = {k: v for k, v in row["ns"].items() if k.startswith(prefix) and k not in mine}
    return min(mine.values()) / min(other.values())


def exchange_row(machine: Machine, made: Compiled, used: Any, registers: int) -> dict[str, Any]:
    row: dict[str, Any] = {"used": used, "instructions": instructions(made), "ratio": {}}
    row |= {"ns": {}, "different": []}
    for direction in ("blocked_to_striped", "striped_to_blocked"):
        names = [name for name in used if name.startswith(direction)]
        part = timed(machine, made, names, registers, 4)
        row["ns"] |= part["ns"]
        row["different"] += part["different"]
        row["ratio"][direction] = round(compared(row, direction, ours="ours"), 3)
    return row


def main() -> int:
    parser = arguments(__doc__, "functions_device.json", dry="compile only", resumes=True)
    parser.add_argument("--fields", type=int, nargs="*", default=FIELDS, help="2 to 16")
    parser.add_argument("--only", nargs="*", default=KINDS, help=", ".join(KINDS))
    options = parser.parse_args()
    record: dict[str, Any] = earlier(options.out, {"rows": {}}, again=options.again or options.dry)
    texts: dict[str, tuple[Callable[..., str], tuple[Any, ...]]]
    texts = {f"scan {d} {op}": (scan_text, (d, op)) for d, op in SCANS}
    texts |= {f"exchange {n}": (timing_text, (n,)) for n in options.fields}
    texts |= {f"move {n}": (moving_text, (n,)) for n in options.fields}
    wanted = {
        name: make
        for name, make in texts.items()
        if name not in record["rows"] and name.split()[0] in options.only
    }
    machine = None if options.dry else Machine()
    if machine is not None:
        record |= environment(machine.properties["name"].decode())
    # Not by forking: this process may hold a GPU.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2 if options.dry else 14, mp_context=fresh) as pool:
        jobs = {name: pool.submit(made_of, *make) for name, make in wanted.items()}
        for name, job in jobs.items():
            found, failed = attempted(_of_job, machine, name, job)
            row = found or {"error": failed[:2000]}
            show(name, row)
            if machine is not None and "error" not in row:
                record["rows"][name] = row
                save(options.out, record)
    if machine is not None and "functions" not in record["rows"] and "functions" in options.only:
        row = {"wrong": check_functions(machine)}
        bad = {name: why for name, why in row["wrong"].items() if why}
        print(f"functions: {len(row['wrong'])} checked, wrong: {bad or 'none'}", flush=True)
        record["rows"]["functions"] = row
        save(options.out, record)
    return 0


def _of_job(machine: Machine | None, name: str, job: Any) -> dict[str, Any]:
    return measured(machine, name, *job.result())


def measured(machine: Machine | None, name: str, made: Compiled, used: Any) -> dict[str, Any]:
    kind, *rest = name.split()
    row: dict[str, Any] = {"used": used}
    if machine is None:
        return row
    if kind == "move":
        return row | {"wrong": check_moves(machine, made, int(rest[0]))}
    if kind == "exchange":
        return exchange_row(machine, made, used, int(rest[0]))
    size = np.dtype(rest[0]).itemsize
    row |= {"instructions": instructions(made), "ratio": {}, "ns": {}, "different": []}
    for form in ("inclusive", "exclusive"):
        part = timed(machine, made, [n for n in used if n.startswith(form)], 1, size)
        row["ns"] |= part["ns"]
        row["different"] += part["different"]
        row["ratio"][form] = round(compared(row, form, ours="ours"), 3)
    return row


def show(name: str, row: dict[str, Any]) -> None:
    if "error" in row:
        print(f"{name}: {row['error'][:300]}", flush=True)
        return
    local = [each for each, used in row["used"].items() if used["local"]]
    said = [f"{len(row['used'])} kernels", f"local memory: {', '.join(local) or 'none'}"]
    if "wrong" in row:
        said.append(f"wrong: {row['wrong'] or 'none'}")
    if "ns" in row:
        said += [f"{each} {ns:.3f}" for each, ns in row["ns"].items()]
        said.append(f"best of ours / best of theirs {row['ratio']}")
        said.append(f"different: {row['different'] or 'none'}")
    print(f"{name}: " + "; ".join(said), flush=True)


if __name__ == "__main__":
    sys.exit(main())
