"""Machine values as C: an expression → the text of an expression, with variables for shared parts.

What a value needs besides C's operators is in `values.h`. Integers of fewer than 32 bits are cast
back after each operation, since C computes them as int; signed sums wrap (`-fwrapv`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

from warploom.machine.c_source import whole_text
from warploom.machine.narrow import FORMATS
from warploom.machine.value.ir import Value, is_signed, nodes, width_of

HEADERS = Path(__file__).parent
# A compiler makes no vectors of these: an instruction with one of them has a loop of its own.
SCALAR = frozenset({"div", "rem", "popc", "clz", "brev", "nth"})
_INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "eq": "==", "lt": "<",
          "le": "<="}  # fmt: skip
_BACK = {"div": "/", "rem": "%", "shr": ">>"}
_REPEATED = frozenset({"min", "max", "clz"})  # their text has an operand twice
_QUICK = {
    ("f16", "rn", "f32"): "h16", ("f16", "rn", "f64"): "h16d", ("f16", "rz", "f32"): "h16_rz",
    ("bf16", "rn", "f32"): "bf16", ("bf16", "rn", "f64"): "bf16d", ("bf16", "rz", "f32"): "bf16_rz",
}  # fmt: skip
Variable = Callable[[str, str], str]  # a type and a text → the name of a variable that holds it


@cache
def prelude() -> str:
    """The C functions that texts of values use."""
    return whole_text(HEADERS / "values.h")


def c_type(type_: str) -> str:
    """The C type of a type."""
    match type_:
        case "pred":
            return "uint32_t"
        case "f32":
            return "float"
        case "f64":
            return "double"
        case _:
            return f"{'' if is_signed(type_) else 'u'}int{width_of(type_)}_t"


def is_scalar(values: list[Value]) -> bool:
    """Whether a loop over lanes with these values is not made of vector instructions."""
    return any(_is_scalar(node) for node in nodes(values))


def _is_scalar(node: Value) -> bool:
    if node.op == "encode":
        name, mode = str(node.number).split()[:2]
        return (name, mode, node.args[0].type) not in _QUICK or "finite" in str(node.number)
    return node.op in SCALAR or (node.op == "mulhi" and width_of(node.type) == 64)


def texts(values: list[Value], operands: list[str], variable: Variable) -> list[str]:
    """The texts of some values, given names of the operands."""
    order = list(nodes(values))
    uses = Counter[Value]()
    for node in order:
        uses.update(node.args * (2 if node.op in _REPEATED else 1))
    made: dict[Value, str] = {}
    for node in order:
        text = _text(node, [made[a] for a in node.args], operands)
        if node.op not in ("arg", "const") and uses[node] > 1:
            text = variable(node.type, text)
        made[node] = text
    return [made[value] for value in values]


def constant(type_: str, number: int) -> str:
    """A number as a constant of a type."""
    if type_ == "pred":
        return f"{number}u"
    if type_[0] == "f":
        return f"{type_}(0x{number:x}ull)"
    if width_of(type_) == 32 and not is_signed(type_):
        return f"{number}u" if number < 10 else f"0x{number:x}u"
    return f"({c_type(type_)})0x{number & (1 << 64) - 1:x}ull"


def _text(node: Value, args: list[str], operands: list[str]) -> str:
    name = c_type(node.type)
    match node.op:
        case "arg":
            return operands[int(node.number)]
        case "const":
            return constant(node.type, int(node.number))
        case "to":
            return f"({name}){args[0]}"
        case "bits":
            return _bits(node, args[0])
        case "select":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        case "not":
            return f"({args[0]} ^ 1u)" if node.type == "pred" else f"({name})(~{args[0]})"
        case "neg":
            return f"({name})(0 - {args[0]})"
        case "eq" | "lt" | "le":
            return f"({args[0]} {_INFIX[node.op]} {args[1]})"
        case "min" | "max":
            sign = "<" if node.op == "min" else ">"
            return f"({args[0]} {sign} {args[1]} ? {args[0]} : {args[1]})"
        case "add" | "sub" | "and" | "or" | "xor":
            return _cut(node, f"{args[0]} {_INFIX[node.op]} {args[1]}")
        case _:
            return _function(node, args)


def _cut(node: Value, text: str) -> str:
    """Back in the type, after C has computed in int."""
    small = node.type != "pred" and width_of(node.type) < 32
    return f"({c_type(node.type)})({text})" if small else f"({text})"


def _bits(node: Value, text: str) -> str:
    source = node.args[0].type
    if "f" in (source[0], node.type[0]):
        return f"{node.type if node.type[0] == 'f' else f'b{width_of(source)}'}({text})"
    return f"({c_type(node.type)}){text}"


def _function(node: Value, args: list[str]) -> str:
    name, width = c_type(node.type), width_of(node.args[0].type)
    a, b = args[0], args[-1]
    match node.op:
        case "mul" if node.type[0] == "f":
            return f"({a} * {b})"
        case "mul" | "shl":  # in at least 32 bits without a sign: nothing overflows as an int
            wide = f"uint{max(32, width)}_t"
            return f"({name})(({wide}){a} {'*' if node.op == 'mul' else '<<'} {b})"
        case "mulhi":
            wide = _wider(node.type)
            return f"({name})((({wide}){a} * ({wide}){b}) >> {width})"
        case "div" | "rem" | "shr":
            return f"({name})({a} {_BACK[node.op]} {b})"
        case "encode":
            return _encoded(node, args)
        case _:
            return _call(node, args, width)


def _call(node: Value, args: list[str], width: int) -> str:
    """What is a function, of the compiler's or of the prelude's."""
    bits = f"(uint{width}_t){args[0]}"
    match node.op:
        case "popc":
            return f"(uint32_t)__builtin_popcountll({bits})"
        case "clz":
            return f"({bits} ? (uint32_t)__builtin_clzll({bits}) - {64 - width}u : {width}u)"
        case "brev":
            return f"({c_type(node.type)})reversed({args[0]}, {width})"
        case "half":
            return f"h{node.type[1:]}({args[0]})"
        case "narrow":
            return f"narrow({args[0]}, {str(node.number).upper()})"
        case "nth":
            return f"nth_set({', '.join(args)})"
        case _:  # rint, trunc, floor, ceil
            return f"__builtin_{node.op}{'f' if node.type == 'f32' else ''}({args[0]})"


def _wider(type_: str) -> str:
    width = 2 * width_of(type_)
    if width == 128:
        return "__int128" if is_signed(type_) else "unsigned __int128"
    return f"{'' if is_signed(type_) else 'u'}int{width}_t"


def _encoded(node: Value, args: list[str]) -> str:
    """A number as the bits of a format; the most common ones have functions that are faster."""
    name, mode, *finite = str(node.number).split()
    x = args[0]
    quick = _QUICK.get((name, mode, node.args[0].type))
    if quick is not None and not finite:
        return f"(uint32_t){quick}({x})"
    form = FORMATS[name]
    beyond = form.largest if finite or form.infinity is None else form.infinity
    nan = form.largest if form.nan is None else form.nan
    numbers = f"{1 - form.bias}, {form.fraction_bits}, {form.largest}u, {beyond}u, {nan}u"
    random = args[1] if len(args) > 1 else "0u"
    return f"coded((double){x}, {numbers}, {form.sign}u, {mode.upper()}, {random})"
