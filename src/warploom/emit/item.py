"""A function that only moves values, as a CUDA template over the type of what it moves.

Loads and stores, in memory or shared memory, are of whole items. Between them an item is taken
apart into words of 32 bits, all of which move alike; what is smaller than a word lies in one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from warploom.emit.cuda import CudaPrinter
from warploom.emit.dialect import CUDA
from warploom.emit.parts import parameters, with_all_named
from warploom.errors import EmitError
from warploom.index.ir import variables
from warploom.kernel import ir
from warploom.kernel.dtype import DType
from warploom.kernel.function import LANE, WHOLE, DeviceFunction, needed
from warploom.kernel.traverse import exprs_of, values_of

Helpers = Callable[[str, CudaPrinter], str]

LANE_TEXT = "const int lane = warploom_lane();"
WHOLE_TEXT = f"const int {WHOLE} = __activemask() == 0xffffffffu;"
ITEM = "T"
WORD = DType.U32

LANE_FUNCTION = """\
#ifndef WARPLOOM_HELPER_LANE
#define WARPLOOM_HELPER_LANE
__device__ __forceinline__ int warploom_lane() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
#endif

"""
_WORDS = """\
#ifndef WARPLOOM_HELPER_WORDS
#define WARPLOOM_HELPER_WORDS
#ifdef __clang__
#define WARPLOOM_COPY __builtin_memcpy
#else
#define WARPLOOM_COPY memcpy
#endif
template <typename T>
struct warploom_words {
  static constexpr int bytes = sizeof(T);
  static constexpr int count = (bytes + 3) / 4;
  static_assert(__is_trivially_copyable(T), "items are moved as words: trivially copyable ones");
  static_assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16,
                "items have 1, 2, 4, 8 or 16 bytes");
};

template <typename T, int N>
__device__ __forceinline__ void warploom_apart(
    const T (&a)[N], unsigned int (&words)[warploom_words<T>::count][N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    unsigned int part[warploom_words<T>::count] = {};
    WARPLOOM_COPY(part, &a[j], sizeof(T));
#pragma unroll
    for (int w = 0; w < warploom_words<T>::count; ++w) words[w][j] = part[w];
  }
}

template <typename T, int N>
__device__ __forceinline__ void warploom_together(
    const unsigned int (&words)[warploom_words<T>::count][N], T (&a)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    unsigned int part[warploom_words<T>::count];
#pragma unroll
    for (int w = 0; w < warploom_words<T>::count; ++w) part[w] = words[w][j];
    WARPLOOM_COPY(&a[j], part, sizeof(T));
  }
}
#endif

"""


def item_function(function: DeviceFunction, helpers: Helpers) -> str:
    """The template, and the function on words that it calls, if it needs one."""
    printer = _ItemPrinter(function)
    printer.statements_of_items(function.body)
    body = printer.lines.text()
    space = {each.name: "const " if each.const else "" for each in function.arrays}
    texts = {name: f"{const}{ITEM}*{CUDA.restrict} {name}" for name, const in space.items()}
    texts |= {name: f"const int {name}" for name in function.numbers if name != WHOLE}
    texts |= {each.name: f"{ITEM}* {each.name}" for each in function.shared}
    for each in function.registers:
        const = "" if each.name in function.written else "const "
        texts[each.name] = f"{const}{ITEM} (&{each.name})[{each.size}]"
    head = f"template <typename {ITEM}>\n"
    head += f"__device__ __forceinline__ void {function.name}({parameters(texts)}) {{\n"
    text = f"{printer.words}{head}{with_all_named(body, texts)}}}\n"
    called = helpers(text, printer)
    return f"{LANE_FUNCTION}{_WORDS if printer.words else ''}{called}{text}"


class _ItemPrinter(CudaPrinter):
    """Prints statements that move whole items; what exchanges words goes into `words`."""

    def __init__(self, function: DeviceFunction) -> None:
        kernel = replace(function.kernel, body=function.body)
        own = replace(CUDA, types={**CUDA.types, WORD: ITEM})
        super().__init__(kernel, own, function.name)
        self.function = function
        self.words = ""

    def zero(self, dtype: DType) -> str:
        del dtype  # whatever it is
        return f"{ITEM}()"

    def statements_of_items(self, body: tuple[ir.Stmt, ...]) -> None:
        """All of them, with definitions of what they need to know."""
        if WHOLE in self.function.numbers:
            self.lines.add(WHOLE_TEXT)
        last = body[-1] if body else None
        if isinstance(last, ir.If) and WHOLE in variables(last.condition):
            self._lane(body)
            self.statements(body[:-1])
            self.lines.open(f"if ({self.index(last.condition)})")
            self._items(last.then, body[:-1])
            self.lines.close("} else {")
            self.lines.depth += 1
            self.statements(last.otherwise)
            self.lines.close()
            return
        first, words, _ = _phases(body)
        self._lane((*first, *body[len(first) + len(words) :]) if words else body)
        self._items(body, ())

    def _lane(self, body: tuple[ir.Stmt, ...]) -> None:
        if any(LANE in variables(expr) for stmt in ir.walk(body) for expr in exprs_of(stmt)):
            self.lines.add(LANE_TEXT)

    def _items(self, body: tuple[ir.Stmt, ...], outer: tuple[ir.Stmt, ...]) -> None:
        first, words, last = _phases(body)
        self.statements(first)
        if words:
            self._exchange(
                words, tuple(each for each in (*outer, *first) if isinstance(each, ir.Let))
            )
        self.statements(last)

    def _exchange(self, words: tuple[ir.Stmt, ...], lets: tuple[ir.Let, ...]) -> None:
        name, given = f"{self.function.name}_words", self.function.registers
        self.words = _word_function(name, self.function, (*lets, *words))
        count = f"warploom_words<{ITEM}>::count"
        for each in given:
            self.lines.add(f"unsigned int {_words(each)}[{count}][{each.size}];")
        for each in given:
            if each.name in self.function.read:
                self.lines.add(f"warploom_apart({each.name}, {_words(each)});")
        self.lines.add("#pragma unroll")
        self.lines.open(f"for (int w = 0; w < {count}; ++w)")
        self.lines.add(f"{name}({', '.join(f'{_words(each)}[w]' for each in given)});")
        self.lines.close()
        for each in given:
            if each.name in self.function.written:
                self.lines.add(f"warploom_together({_words(each)}, {each.name});")


def without_idle(body: str) -> str:
    """A text without the lane's number, or the thread's, if nothing mentions it: some exchanges are
    written as instructions that know their lane."""
    for name in (LANE, "thread"):  # a lane may be made of a thread
        said = re.sub(r"//.*", "", body)
        if len(re.findall(rf"\b{name}\b", said)) == 1:
            body = re.sub(rf"^ *const int {name} = .*\n", "", body, count=1, flags=re.MULTILINE)
    return body


def _words(registers: ir.Registers) -> str:
    return f"{registers.name}_words"


def _word_function(name: str, function: DeviceFunction, body: tuple[ir.Stmt, ...]) -> str:
    body = needed(body)
    printer = CudaPrinter(replace(function.kernel, body=body), owner=function.name)
    printer.lines.add(LANE_TEXT)
    printer.statements(body)
    texts = {
        each.name: f"{'' if each.name in function.written else 'const '}unsigned int"
        f" (&{each.name})[{each.size}]"
        for each in function.registers
    }
    head = f"__device__ __forceinline__ void {name}({parameters(texts)}) {{\n"
    return f"{head}{without_idle(printer.lines.text())}}}\n\n"


def _phases(body: tuple[ir.Stmt, ...]) -> tuple[tuple[ir.Stmt, ...], ...]:
    """Loads; what exchanges or selects words, if anything does; stores."""
    if not any(_is_of_words(stmt) for stmt in ir.walk(body)):
        return body, (), ()
    loads = [at for at, stmt in enumerate(body) if _has(stmt, ir.Load)]
    stores = [at for at, stmt in enumerate(body) if _has(stmt, ir.Store)]
    first = loads[-1] + 1 if loads else 0
    last = stores[0] if stores else len(body)
    if any(_is_of_words(stmt) for stmt in ir.walk((*body[:first], *body[last:]))):
        raise EmitError("a function exchanges words while it loads or stores items")
    return body[:first], body[first:last], body[last:]


def _has(stmt: ir.Stmt, kind: type) -> bool:
    return any(isinstance(each, kind) for each in ir.walk((stmt,)))


def _is_of_words(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Shuffle) or any(
        isinstance(part, ir.Choose) for value in values_of(stmt) for part in ir.walk_value(value)
    )
