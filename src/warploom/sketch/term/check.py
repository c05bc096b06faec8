"""When a sketch is well formed: the surface tree comes in, a program comes out.

Names are looked up, blocks are flattened into steps, shapes and folds are worked out; everything
that is wrong is one CheckError at the word that is wrong.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from warploom.errors import CheckError, Span
from warploom.sketch.term import goals, ir, surface
from warploom.sketch.term.assemble import Assembly, Functions, at, nearest
from warploom.sketch.term.laws import FLATTEN
from warploom.sketch.term.limits import check_run, check_shape, show_shape
from warploom.sketch.term.parse import parse

_IGNORED = ("prune", "noprune")


def load(text: str, name: str, functions: Functions) -> ir.Program:
    """The program that a text means, or one located error."""
    return check(parse(text, name), name, functions)


def check(file: surface.File, name: str, functions: Functions) -> ir.Program:
    assembly = Assembly(functions)
    scope: _Scope = _Scope(ChainMap(), "")
    for statement in file.statements:
        _statement(assembly, scope, statement)
    return assembly.program(name, file.end)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Names in reach, and what the steps of this block are called: `block.name`."""

    variables: ChainMap[str, int]
    prefix: str

    def find(self, name: surface.Name) -> int:
        position = self.variables.get(name.text)
        if position is None:
            advice = nearest(name.text, list(self.variables), "bind it in an earlier statement")
            raise CheckError(f"unknown name '{name.text}'", name.span, advice)
        return position


def _statement(assembly: Assembly, scope: _Scope, statement: surface.Statement) -> int | None:
    """Adds one statement; a binding's position comes out."""
    match statement:
        case surface.Define():
            assembly.define(_definition(statement))
            return None
        case surface.GoalStatement():
            with at(statement.span):
                assembly.goal(_goal(statement))
            return None
        case surface.Binding(name, declared, value, annotations):
            check_shape(declared.shape, declared.span)
            position = _value(assembly, scope, name, declared, value)
            assembly.mark(
                position, _marks(annotations, is_input=isinstance(value, surface.LiteralValue))
            )
            scope.variables[name.text] = position
            return position
        case _:
            assert_never(statement)


def _value(
    assembly: Assembly,
    scope: _Scope,
    name: surface.Name,
    declared: surface.Type,
    value: surface.LiteralValue | surface.Block | surface.Call,
) -> int:
    match value:
        case surface.LiteralValue():
            shape, terms = _literal(value, declared)
            with at(value.span):
                return assembly.literal(scope.prefix + name.text, shape, terms, name.span)
        case surface.Block():
            return _block(assembly, scope, name, declared, value)
        case surface.Call():
            return _call(assembly, scope, name, declared, value)
        case _:
            assert_never(value)


def _block(
    assembly: Assembly,
    scope: _Scope,
    name: surface.Name,
    declared: surface.Type,
    block: surface.Block,
) -> int:
    inner = _Scope(scope.variables.new_child(), f"{scope.prefix}{name.text}.")
    last = None
    for statement in block.statements:
        position = _statement(assembly, inner, statement)
        last = last if position is None else position
    if last is None:
        raise CheckError(
            "a block needs at least one binding", block.span, "its last one is its value"
        )
    if assembly.shape(last) != declared.shape:
        raise CheckError(
            f"'{name.text}' is declared {show_shape(declared.shape)}, "
            f"but the last binding of its block has {show_shape(assembly.shape(last))}",
            declared.span,
        )
    return last


# -- calls ---------------------------------------------------------------------------------------


def _call(
    assembly: Assembly,
    scope: _Scope,
    name: surface.Name,
    declared: surface.Type,
    call: surface.Call,
) -> int:
    function = call.function
    gather_shape, options = _before_fold(declared, call)
    if function.text in scope.variables:
        if call.args is not None:
            raise CheckError(
                f"'{function.text}' is a variable here, it takes no arguments",
                function.span,
                "a variable hides the function of the same name; rename the variable",
            )
        if options:
            raise CheckError(f"copying '{function.text}' takes no options", function.span)
        args: tuple[int, ...] = (scope.variables[function.text],)
        resolved = "identity"
    elif call.args is None:
        names = [*scope.variables, *assembly.functions.known()]
        raise CheckError(
            f"'{function.text}' is no variable, and a function needs its arguments",
            function.span,
            nearest(function.text, names, f"write {function.text}(…)"),
        )
    else:
        args = tuple(scope.find(arg) for arg in call.args)
        resolved = function.text
    with at(function.span, _places(call.options)):
        gathers = assembly.resolve(resolved, options, args, gather_shape)
        return assembly.call(scope.prefix + name.text, gathers, args, call.operator, name.span)


def _before_fold(declared: surface.Type, call: surface.Call) -> tuple[ir.Shape, goals.Options]:
    """The shape the gather gives, fold axis included, and the options meant for the function.

    With `fold_len` the declared shape is the one after the fold, without it the one before.
    """
    options = {option.name.text: option.value for option in call.options}
    given = next((option for option in call.options if option.name.text == "fold_len"), None)
    if given is None:
        return declared.shape, options
    del options["fold_len"]
    length = given.value
    if call.operator is None:
        raise CheckError(
            "option 'fold_len' without a fold", given.name.span, "write fold in front of the call"
        )
    if not isinstance(length, int) or length < 0:
        raise CheckError("option 'fold_len' is a number of at least 1", given.name.span)
    return (*declared.shape, length) if length else declared.shape, options


# -- literals and goals --------------------------------------------------------------------------


def _literal(
    value: surface.LiteralValue, declared: surface.Type
) -> tuple[ir.Shape, tuple[ir.Term, ...]]:
    """The shape after all folds, and the terms."""
    match value.body:
        case surface.Range(start, stop):
            shape, terms = _range(start, stop, value.span, declared)
        case surface.Array(shape, leaves):
            with at(value.span):
                terms = [_term(leaf) for leaf in leaves]
        case _:
            assert_never(value.body)
    outer = len(shape) - len(value.folds)
    if outer < 0:
        raise CheckError(
            f"{len(value.folds)} folds need {len(value.folds)} axes, got {show_shape(shape)}",
            value.span,
        )
    if declared.shape not in (shape, shape[:outer]):
        raise CheckError(
            f"declared {show_shape(declared.shape)}, but the array has {show_shape(shape)}",
            declared.span,
            "before or after its folds, the array must have the declared shape"
            if value.folds
            else "",
        )
    for axis in reversed(range(outer, len(shape))):
        length, operator = shape[axis], value.folds[axis - outer]
        with at(value.span):
            check_run(operator, length)
        terms = [ir.fold_of(terms[i : i + length], operator) for i in range(0, len(terms), length)]
    return shape[:outer], tuple(terms)


def _range(
    start: int, stop: int, span: Span, declared: surface.Type
) -> tuple[ir.Shape, list[ir.Term]]:
    if not 0 <= start < stop:
        raise CheckError(
            f"range({start}, {stop}) holds nothing",
            span,
            "range(a, b) holds a to b-1, with 0 <= a < b",
        )
    if stop - start != ir.size(declared.shape):
        raise CheckError(
            f"declared {show_shape(declared.shape)} with {ir.size(declared.shape)} cells, "
            f"but range({start}, {stop}) holds {stop - start}",
            span,
        )
    return declared.shape, [ir.Symbol(number) for number in range(start, stop)]


def _term(leaf: surface.Leaf) -> ir.Term:
    match leaf:
        case int():
            return ir.Symbol(leaf)
        case surface.Pack(operator, items):
            check_run(operator, len(items))
            return ir.fold_of([_term(item) for item in items], operator)
        case surface.Unknown():
            return ir.Undefined()
        case surface.Exact(value):
            return ir.constant(value)
        case _:
            assert_never(leaf)


def _goal(statement: surface.GoalStatement) -> ir.Goal:
    declared, laws = statement.type, _laws(statement.annotations)
    check_shape(declared.shape, declared.span)
    match statement.value:
        case surface.LiteralValue():
            shape, terms = _literal(statement.value, declared)
            return ir.Goal(shape, terms, "", declared.span, laws)
        case surface.NamedGoal(name, options):
            with at(name.span, _places(options)):
                goal = goals.built_in(name.text, _mapping(options), declared.shape)
            return ir.Goal(goal.shape, goal.values, goal.text, declared.span, laws)
        case _:
            assert_never(statement.value)


def _laws(annotations: tuple[surface.Annotation, ...]) -> tuple[str, ...]:
    """Up to what a goal is to be met; advice on pruning is read and ignored, as elsewhere."""
    for name in (each.name for each in annotations):
        if name.text not in (FLATTEN, *_IGNORED):
            raise CheckError(
                f"a goal has no '@{name.text}'", name.span, "write @flatten, or nothing"
            )
    return (FLATTEN,) if any(each.name.text == FLATTEN for each in annotations) else ()


def _marks(annotations: tuple[surface.Annotation, ...], *, is_input: bool) -> ir.Marks:
    """Where an array lies in a kernel."""
    for name, number in ((each.name, each.number) for each in annotations):
        if name.text not in (*ir.PLACES, ir.STEP, *_IGNORED):
            known = ", ".join(f"@{each}" for each in (*ir.PLACES, f"{ir.STEP}=n"))
            raise CheckError(f"an array has no '@{name.text}'", name.span, f"there are {known}")
        if (name.text == ir.STEP) != (number is not None):
            raise CheckError(
                f"'@{name.text}' {'with' if number is not None else 'without'} a number",
                name.span,
                f"write @{ir.STEP}=32, and the others alone",
            )
        if name.text == ir.STEP and not is_input:
            raise CheckError("only inputs have a step", name.span)
    return tuple(
        (each.name.text, each.number) for each in annotations if each.name.text not in _IGNORED
    )


def _mapping(options: tuple[surface.Option, ...]) -> goals.Options:
    return {option.name.text: option.value for option in options}


def _places(options: tuple[surface.Option, ...]) -> dict[str, Span]:
    return {option.name.text: option.name.span for option in options}


# -- definitions ---------------------------------------------------------------------------------


def _definition(define: surface.Define) -> ir.Definition:
    for declared in (*define.args, define.out):
        check_shape(declared.shape, declared.span)
    args = tuple(declared.shape for declared in define.args)
    out = define.out.shape
    tables = np.stack([_table(gather, args, out) for gather in define.gathers])
    choices = tuple(
        define.name.text if gather.name is None else gather.name.text for gather in define.gathers
    )
    return ir.Definition(define.name.text, args, out, choices, tables)


def _table(
    gather: surface.Gather, args: tuple[ir.Shape, ...], out: ir.Shape
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    if len(gather.entries) != ir.size(out):
        raise CheckError(
            f"the output {show_shape(out)} needs {ir.size(out)} entries, got {len(gather.entries)}",
            gather.span,
        )
    return np.array([_offset(entry, args) for entry in gather.entries], np.int32)


def _offset(entry: surface.Entry | int, args: tuple[ir.Shape, ...]) -> int:
    """Where an entry reads, counted through all arguments laid end to end."""
    if isinstance(entry, int):
        return entry if 0 <= entry < ir.size(args[0]) else ir.UNDEFINED
    argument, index = entry.argument, entry.index
    if argument in (-1, len(args)):
        return ir.ZERO
    if not 0 <= argument < len(args):
        raise CheckError(
            f"there is no argument {argument}",
            entry.span,
            f"use 0 to {len(args) - 1}, or -1 for zero",
        )
    shape = args[argument]
    if isinstance(index, tuple):
        inside = len(index) == len(shape) and all(
            0 <= i < length for i, length in zip(index, shape, strict=True)
        )
        if not inside:
            raise CheckError(
                f"index ({', '.join(map(str, index))}) is not in {show_shape(shape)}", entry.span
            )
        index = int(np.ravel_multi_index(index, shape))
    base = sum(ir.size(earlier) for earlier in args[:argument])
    return base + index if 0 <= index < ir.size(shape) else ir.UNDEFINED
