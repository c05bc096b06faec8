"""Functions that texts of Hopper call: barriers in shared memory, copies through tensor maps, and
products of warp groups. `~` stands for what the names of a text's helpers begin with.
"""

from __future__ import annotations

import re
from functools import cache

from warploom.emit.unpack_helper import unpack
from warploom.kernel.ir import TensorKind

_HEAD = "static __device__ __forceinline__ void"
_MAP = "struct __align__(64) ~map { unsigned long long at[16]; };\n"
_COPY = "cp.async.bulk.tensor"
_TEXTS = {
    "barrier_begin": "(unsigned bar, int count) {\n"
    '  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count));',
    "expect": "(unsigned bar, int bytes) {\n"
    '  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"\n'
    '    :: "r"(bar), "r"(bytes) : "memory");',
    "prefetch": "(const ~map* map) {\n"
    '  asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");',
    "arrive": "(unsigned bar) {\n"
    '  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");',
    "arrive_at": "(unsigned bar, int block) {\n"
    '  asm volatile("{\\n.reg .b32 there;\\nmapa.shared::cluster.u32 there, %0, %1;\\n"\n'
    '    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\\n}"\n'
    '    :: "r"(bar), "r"(block) : "memory");',
    "reach": "(unsigned at, int block, unsigned& there) {\n"
    '  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(block));',
    # In the scope of a block, as it is by practice: ptxas makes a fence of all memory of the other.
    "arrive_read": "(unsigned bar, int block) {\n"
    '  asm volatile("{\\n.reg .b32 there;\\nmapa.shared::cluster.u32 there, %0, %1;\\n"\n'
    '    "mbarrier.arrive.shared::cluster.b64 _, [there];\\n}"\n'
    '    :: "r"(bar), "r"(block) : "memory");',
    "cluster_arrive": "() {\n"
    '  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");',
    # After a fence of the barriers that others are to find: one of all memory would come first.
    "cluster_arrive_begun": "() {\n"
    '  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");',
    "cluster_wait": '() {\n  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");',
    "cluster_meet": "() {\n"
    '  asm volatile("barrier.cluster.arrive.release.aligned;\\n"\n'
    '    "barrier.cluster.wait.acquire.aligned;" ::: "memory");',
}
_WAIT = """(unsigned bar, unsigned phase) {{
  asm volatile("{{\\n.reg .pred done;\\nagain:\\n"
    "mbarrier.try_wait.parity{scope}.shared::cta.b64 done, [%0], %1;\\n"
    "@done bra over;\\nbra again;\\nover:\\n}}" :: "r"(bar), "r"(phase) : "memory");"""
_TEXTS["wait"] = _WAIT.format(scope="")
_TEXTS["wait_cluster"] = _WAIT.format(scope=".acquire.cluster")
_SEND = """(unsigned to, unsigned bar, const {type}* of) {{
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.{kind} [%0], "
    "{{%2, %3, %4, %5}}, [%1];" :: "r"(to), "r"(bar),
    "{held}"(of[0]), "{held}"(of[1]), "{held}"(of[2]), "{held}"(of[3]) : "memory");"""
_TAKE = """(unsigned at, {type}* to) {{
  {type} a, b, c, d;
  asm volatile("ld.shared.v4.{kind} {{%0, %1, %2, %3}}, [%4];"
    : "={held}"(a), "={held}"(b), "={held}"(c), "={held}"(d) : "r"(at) : "memory");
  to[0] += a, to[1] += b, to[2] += c, to[3] += d;"""
for _type, _kind, _constraint in (("float", "f32", "f"), ("int", "s32", "r")):
    for _way, _text in (("send", _SEND), ("take", _TAKE)):
        _TEXTS[f"{_way}_{_kind}"] = _text.format(type=_type, kind=_kind, held=_constraint)
ASYNC_NAMES = re.compile(
    r"map|copy_(in|in_all|out)_\d|product_\w+|(load|store)_matrix_\w+|unpack_\w+|"
    r"shared_sum_\d|" + "|".join(_TEXTS)
)
_CALLED = re.compile(r"\b(\w+)\(")


def async_texts(prefix: str, body: str) -> dict[str, str]:
    """The definitions of what a text calls, by name."""
    found = {}
    for name in dict.fromkeys(_CALLED.findall(body)):
        own = name.removeprefix(prefix)
        if own != name and ASYNC_NAMES.fullmatch(own):
            found[name] = definition(own).replace("~", prefix)
    return found


def map_text(prefix: str) -> str:
    return _MAP.replace("~", prefix)


def definition(name: str) -> str:
    """A helper by its name, which says all of it."""
    if name in _TEXTS:
        text = _TEXTS[name]
    elif name.startswith("copy_"):
        way, axes = name.removeprefix("copy_").rsplit("_", 1)
        text = _copy(way, int(axes))
    elif name.startswith("unpack_"):
        text = unpack(name)
    elif name.startswith("shared_sum_"):
        text = _shared_sum(int(name[-1]))
    elif name.startswith("product_"):
        text = _product(name)
    else:
        text = _matrix(name)
    return f"{_HEAD} ~{name}{text}\n}}\n"


def _copy(way: str, axes: int) -> str:
    """Coordinates from the innermost axis outwards."""
    names = [f"x{axis}" for axis in range(axes)]
    given = ", ".join(f"int {each}" for each in names)
    held = ", ".join(f'"r"({each})' for each in names)
    if way == "out":
        at = ", ".join(f"%{axis + 1}" for axis in range(axes))
        return (
            f"(const ~map* map, {given}, unsigned from) {{\n"
            f'  asm volatile("{_COPY}.{axes}d.global.shared::cta.tile.bulk_group '
            f'[%0, {{{at}}}], [%{axes + 1}];"\n'
            f'    :: "l"(map), {held}, "r"(from) : "memory");'
        )
    at = ", ".join(f"%{axis + 2}" for axis in range(axes))
    many = way == "in_all"
    mask, tail = (", int blocks", ', "h"((short)blocks)') if many else ("", "")
    to = ".multicast::cluster" if many else ""
    last = f", %{axes + 3}" if many else ""
    return (
        f"(unsigned to, const ~map* map, {given}, unsigned bar{mask}) {{\n"
        f'  asm volatile("{_COPY}.{axes}d.shared::cluster.global.tile'
        f'.mbarrier::complete_tx::bytes{to}"\n'
        f'    " [%0], [%1, {{{at}}}], [%{axes + 2}]{last};"\n'
        f'    :: "r"(to), "l"(map), {held}, "r"(bar){tail} : "memory");'
    )


def _shared_sum(blocks: int) -> str:
    """Each thread reads elements of all blocks at once, and adds them in order. Nobody writes what
    others read any more, so a block waits for them only before it ends, and its memory with it."""
    loads = "".join(
        f'    asm volatile("{{\\n.reg .b32 there;\\nmapa.shared::cluster.u32 there, %1, {block};"\n'
        f'      "\\nld.shared::cluster.f32 %0, [there];\\n}}" : "=f"(x{block}) : "r"(own));\n'
        for block in range(blocks)
    )
    names = [f"x{block}" for block in range(blocks)]
    meet = (
        '  asm volatile("barrier.cluster.arrive.release.aligned;\\n"\n'
        '    "barrier.cluster.wait.acquire.aligned;" ::: "memory");'
    )
    return (
        f"(unsigned at, int share, int threads) {{\n{meet}\n"
        '  unsigned rank;\n  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));\n'
        "#pragma unroll\n  for (int first = 0; first < share; first += threads) {\n"
        "    const int i = first + (int)threadIdx.x;\n    if (i >= share) break;\n"
        "    const unsigned own = at + 4 * (rank * share + i);\n"
        f"    float {', '.join(names)};\n{loads}"
        f'    asm volatile("st.shared.f32 [%0], %1;" :: "r"(own), "f"({" + ".join(names)})'
        ' : "memory");\n'
        '  }\n  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");\n'
        "  __syncthreads();"
    )


_PTX_KIND: dict[TensorKind, tuple[int, str]] = {
    "bf16": (16, "f32.bf16.bf16"), "f16": (16, "f32.f16.f16"), "tf32": (8, "f32.tf32.tf32"),
    "e4m3": (32, "f32.e4m3.e4m3"), "e5m2": (32, "f32.e5m2.e5m2"), "i8": (32, "s32.s8.s8"),
    "u8": (32, "s32.u8.u8"),
}  # fmt: skip


def product_name(kind: TensorKind, columns: int, majors: tuple[str, str], held: bool) -> str:
    """The name of a product, with the axes that are dense; `held`: a is in registers."""
    first = "r" if held else majors[0]
    return f"product_{kind}_{columns}_{first}_{majors[1]}"


@cache
def _product(name: str) -> str:
    _, kind, columns, first, second = name.split("_")
    depth, types = _PTX_KIND[kind]  # type: ignore[index]
    many = int(columns) // 2
    real = types.startswith("f32")
    sums = ", ".join(f"%{at}" for at in range(many))
    cells = ", ".join(f'"+{"f" if real else "r"}"(d[{at}])' for at in range(many))
    given = 4 if first == "r" else 1
    words = ", ".join(f"%{many + at}" for at in range(given))
    a = f"{{{words}}}" if first == "r" else words
    factor = [f'"r"(a{at})' for at in range(4)] if first == "r" else ['"l"(a)']
    # Of factors of 16 bits it is said which axis is dense; of one in registers there is none.
    said = [f", {int(each == 'mn')}" for each in (first, second) if each != "r"]
    majors = "".join(said) if kind in ("bf16", "f16") else ""
    ones = ", 1, 1" if real else ""
    takes = (
        ", ".join(f"unsigned a{at}" for at in range(4)) if first == "r" else "unsigned long long a"
    )
    return (
        f"({'float' if real else 'int'}* d, {takes}, unsigned long long b, int adds) {{\n"
        f'  asm volatile("{{\\n.reg .pred adds;\\nsetp.ne.b32 adds, %{many + given + 1}, 0;\\n"\n'
        f'    "wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{types} "\n'
        f'    "{{{sums}}}, "\n'
        f'    "{a}, %{many + given}, adds{ones}{majors};\\n}}"\n'
        f"    : {cells}\n"
        f'    : {", ".join(factor)}, "l"(b), "r"(adds));'
    )


def matrix_name(store: bool, count: int, transposed: bool) -> str:
    return f"{'store' if store else 'load'}_matrix_{count}{'_t' if transposed else ''}"


def _matrix(name: str) -> str:
    way, _, count, *rest = name.split("_")
    many = int(count)
    shape = f"m8n8.x{many}{'.trans' if rest else ''}.shared.b16"
    names = [f"r{at}" for at in range(many)]
    if way == "store":
        words = ", ".join(f"%{at + 1}" for at in range(many))
        given = ", ".join(f"unsigned {each}" for each in names)
        held = ", ".join(f'"r"({each})' for each in names)
        return (
            f"(unsigned at, {given}) {{\n"
            f'  asm volatile("stmatrix.sync.aligned.{shape} [%0], {{{words}}};"\n'
            f'    :: "r"(at), {held} : "memory");'
        )
    words = ", ".join(f"%{at}" for at in range(many))
    given = ", ".join(f"unsigned& {each}" for each in names)
    held = ", ".join(f'"=r"({each})' for each in names)
    return (
        f"(unsigned at, {given}) {{\n"
        f'  asm volatile("ldmatrix.sync.aligned.{shape} {{{words}}}, [%{many}];"\n'
        f'    : {held} : "r"(at) : "memory");'
    )
