"""`Space`: the declarations of a space, written one after another beside the paper's listings.

    space = Space("order of instructions")
    instructions = space.objects("instructions", "abc")
    order = space.choice(
        "order", instructions, instructions,
        values="BEFORE AFTER", antisymmetric={"BEFORE": "AFTER"},
    )
    a, b, c = instructions.each("a", "b", "c")
    space.require(
        order(a, c).is_("AFTER") | order(a, b).is_not("AFTER") | order(b, c).is_not("AFTER")
    )

What a declaration cannot mean is refused here; the rest is data for evaluate.py and propagation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from warploom.errors import CheckError
from warploom.search.space import ir
from warploom.search.space.sentence import (
    check_amount,
    check_requirement,
    compared,
    renamed,
    renamed_apart,
    variables_of,
)

# A domain is one word; one bit of it says that the objects are not there.
MOST_VALUES = 62
BOOLEAN = ("TRUE", "FALSE")

Variables = ir.Variable | tuple[ir.Variable, ...]


def amount(value: ir.Term, when: ir.Sentence = ir.TRUE) -> ir.Amount:
    """What a counter takes for each tuple of objects of its variables, where `when` holds."""
    return ir.Amount(value, ir.sentence(when))


class Space:
    """A space under construction; lists of declarations once it is done."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numbering: dict[Hashable, int] = {}  # every object met, in order of declaration
        # Of the objects that may be inactive: the flag, and the object that it is asked of.
        self.flags: dict[Hashable, tuple[ir.Choice, Hashable]] = {}
        self.properties: list[ir.Property] = []
        self.numbers: list[ir.Number] = []
        self.choices: list[ir.Choice] = []
        self.counters: list[ir.Counter] = []
        self.constraints: list[ir.Constraint] = []
        self._names: set[str] = set()
        self._labels: dict[str, Hashable] = {}
        self._lifts: dict[ir.Choice, ir.Counter] = {}

    # -- objects -----------------------------------------------------------------------------------

    def objects(self, name: str, items: Iterable[Hashable]) -> ir.Property:
        """A set of objects. The same object may be in several sets."""
        return self.relation(name, [(item,) for item in items], arity=1)

    def relation(
        self, name: str, rows: Iterable[ir.Objects], arity: int | None = None
    ) -> ir.Property:  # fmt: skip
        """A set of tuples of objects; `arity` is only needed where there may be no tuple."""
        listed = tuple(tuple(row) for row in rows)
        width = len(listed[0]) if arity is None and listed else arity
        if width is None or any(len(row) != width for row in listed):
            raise CheckError(f"the tuples of '{name}' differ in length")
        if len(set(listed)) != len(listed):
            raise CheckError(f"'{name}' lists a tuple twice")
        for row in listed:
            for item in row:
                self._number(item)
        made = ir.Property(self._name(name), width, listed, frozenset(listed))
        self.properties.append(made)
        return made

    def number(self, name: str, values: Mapping[Hashable, int]) -> ir.Number:
        """An integer for each object, or for each tuple of objects that is a tuple key."""
        rows = {key if isinstance(key, tuple) else (key,): int(v) for key, v in values.items()}
        arities = {len(key) for key in rows}
        if len(arities) != 1:
            raise CheckError(f"the keys of '{name}' differ in length")
        made = ir.Number(self._name(name), arities.pop(), rows)
        self.numbers.append(made)
        return made

    def flag(
        self,
        name: str,
        objects: ir.Property,
        governs: ir.Property | None = None,
        derived: bool = False,
    ) -> ir.Choice:
        """Makes the objects optional: TRUE where they are active.

        With `governs`, tuples (object, optional object), it is these others that are active where
        the flag of the object is TRUE: one flag for all that comes and goes together.

        Choices made of them, to be declared *later*, have no value where one is inactive. Sentences
        say nothing of inactive objects, unless they ask for their flags; a condition on a choice
        that has no value is then true, or false within `some`. No counter counts them.
        """
        optional = {row[-1]: row[0] for row in (objects if governs is None else governs).rows}
        used = {item for choice in self.choices for row in choice.instances for item in row}
        for item in optional:
            if item in used:
                raise CheckError(f"'{item}' became optional after a choice was made of it")
            if item in self.flags:
                raise CheckError(f"'{item}' has two flags")
        made = self.choice(name, objects, values=BOOLEAN, derived=derived)
        made = self.choices[-1] = replace(made, is_flag=True)
        unknown = [owner for owner in optional.values() if (owner,) not in objects]
        if unknown or len(optional) != len((objects if governs is None else governs).rows):
            raise CheckError(f"'{name}' governs objects by none or by two of its flags")
        self.flags |= {item: (made, owner) for item, owner in optional.items()}
        return made

    def _number(self, item: Hashable) -> None:
        if item not in self.numbering:
            label = str(item)
            if self._labels.setdefault(label, item) != item:
                raise CheckError(
                    f"two objects are both called '{label}'",
                    advice="records name objects by str(), which must tell them apart",
                )
            self.numbering[item] = len(self.numbering)

    def _name(self, name: str) -> str:
        if not name or name in self._names:
            raise CheckError(f"the name '{name}' is taken" if name else "a name is needed")
        self._names.add(name)
        return name

    # -- choices -----------------------------------------------------------------------------------

    def choice(
        self,
        name: str,
        *arguments: ir.Property,
        values: str | Sequence[str],
        symmetric: bool = False,
        antisymmetric: Mapping[str, str] | None = None,
        derived: bool = False,
    ) -> ir.Choice:
        """One of `values` for each tuple of different objects of the arguments.

        `antisymmetric` maps values to what they are with the two objects exchanged; the others are
        their own inverses.
        """
        listed = tuple(values.split()) if isinstance(values, str) else tuple(values)
        self._check_values(name, listed)
        inverse = None
        if symmetric or antisymmetric is not None:
            inverse = _inverse(name, listed, antisymmetric or {}, arguments)
        instances = self._instances(arguments, halved=inverse is not None)
        start = ((1 << len(listed)) - 1,) * len(instances)
        return self._add_choice(name, arguments, listed, instances, start, inverse, derived)

    def boolean(self, name: str, *arguments: ir.Property, derived: bool = False) -> ir.Choice:
        return self.choice(name, *arguments, values=BOOLEAN, derived=derived)

    def integer(
        self,
        name: str,
        *arguments: ir.Property,
        values: Sequence[int] | Mapping[Hashable, Sequence[int]],
        derived: bool = False,
    ) -> ir.Choice:
        """A number among `values`: the same for all objects, or listed for each object (or tuple
        of objects, where there are several arguments)."""
        instances = self._instances(arguments, halved=False)
        own: list[Sequence[int]] = []
        for row in instances:
            key = row[0] if len(row) == 1 else row
            if isinstance(values, Mapping) and key not in values:
                raise CheckError(f"'{name}' lists no values for {key}")
            own.append(values[key] if isinstance(values, Mapping) else values)
        universe = tuple(sorted({int(value) for listed in own for value in listed}))
        self._check_values(name, universe)
        place = {value: 1 << position for position, value in enumerate(universe)}
        start = tuple(sum(place[value] for value in set(listed)) for listed in own)
        return self._add_choice(name, arguments, universe, instances, start, None, derived)

    def _check_values(self, name: str, values: tuple[ir.Value, ...]) -> None:
        if len(set(values)) != len(values) or len(values) > MOST_VALUES:
            raise CheckError(
                f"'{name}' has {len(values)} values",
                advice=f"different values, at most {MOST_VALUES} for all objects together",
            )

    def _add_choice(
        self,
        name: str,
        arguments: tuple[ir.Property, ...],
        values: tuple[ir.Value, ...],
        instances: tuple[ir.Objects, ...],
        start: tuple[int, ...],
        inverse: tuple[int, ...] | None,
        derived: bool,
    ) -> ir.Choice:
        optional = [any(item in self.flags for item in row) for row in instances]
        absent = 1 << len(values)
        pairs = zip(start, optional, strict=True)
        start = tuple(bits | (absent if may else 0) for bits, may in pairs)
        made = ir.Choice(
            self._name(name), arguments, values, instances, start, inverse, derived, any(optional)
        )
        self.choices.append(made)
        return made

    def _instances(
        self, arguments: tuple[ir.Property, ...], halved: bool
    ) -> tuple[ir.Objects, ...]:
        rows = (sum(parts, ()) for parts in product(*(a.rows for a in arguments)))
        different = [row for row in rows if len(set(row)) == len(row)]
        if halved:
            different = [row for row in different if self._in_order(row)]
        return tuple(different)

    def _in_order(self, row: ir.Objects) -> bool:
        return self.numbering[row[0]] < self.numbering[row[1]]

    # -- counters ----------------------------------------------------------------------------------

    def total(
        self, name: str, *amounts: ir.Amount, per: Variables = (), base: ir.Term = 0
    ) -> ir.Counter:  # fmt: skip
        """`base` plus all amounts (none negative), for each tuple of objects of `per`."""
        return self._counter(name, "sum", amounts, per, base)

    def product(
        self, name: str, *amounts: ir.Amount, per: Variables = (), base: ir.Term = 1
    ) -> ir.Counter:  # fmt: skip
        """`base` times all amounts (at least 1 each), for each tuple of objects of `per`."""
        return self._counter(name, "product", amounts, per, base)

    def _counter(
        self,
        name: str,
        kind: ir.Kind,
        amounts: tuple[ir.Amount, ...],
        per: Variables,
        base: ir.Term,
    ) -> ir.Counter:
        keys = per if isinstance(per, tuple) else (per,)
        for part in (*amounts, ir.Amount(base, ir.TRUE)):
            check_amount(name, kind, part)
        if not set(variables_of(base)) <= set(keys):
            raise CheckError(f"the base of '{name}' depends on what is counted")
        made = ir.Counter(self._name(name), kind, keys, amounts, base)
        self.counters.append(made)
        return made

    # -- constraints -------------------------------------------------------------------------------

    def require(self, wanted: ir.Sentence, name: str = "") -> None:
        """The sentence holds for all (different, active) objects of its variables."""
        check_requirement(ir.sentence(wanted))
        meant = compared(renamed_apart(wanted), self._lifted)
        self.constraints.append(ir.Requirement(self._constraint(name), meant))

    def _lifted(self, term: ir.Chosen) -> ir.Counted:
        """The value of a choice as a counter, so that it can be compared with one."""
        choice = term.choice
        if choice not in self._lifts:
            names = [f"{choice.name}'s {at}" for at in range(choice.arity)]
            variables: list[ir.Variable] = []
            for members in choice.sets:
                variables += members.row(*names[len(variables) :][: members.arity])
            value = amount(ir.Chosen(choice, tuple(variables)))
            name = f"value of {choice.name}"
            self._lifts[choice] = self.total(name, value, per=tuple(variables))
        return ir.Counted(self._lifts[choice], term.arguments)

    def _constraint(self, name: str) -> str:
        return self._name(name or f"constraint {len(self.constraints) + 1}")

    def quotient(
        self,
        name: str,
        member: ir.Variable,
        *,
        when: ir.Sentence,
        same: ir.Sentence,
        per: Variables = (),
        earlier: ir.Property | None = None,
        agreed: bool = False,
    ) -> ir.Choice:
        """A Boolean: `member` fulfils `when` and is the first of its class, its representative.

        `same` says of `member` and one other variable that they are in one class. It must be an
        equivalence, and the members of a class fulfil `when` together, which is required here
        unless it is `agreed`: said by other constraints.
        Counting representatives counts each class once. First is what was declared first, or by
        `earlier`, a relation of tuples (*per, first, second) that orders each class.
        """
        keys = per if isinstance(per, tuple) else (per,)
        others = set(variables_of(same)) - {member, *keys}
        if len(others) != 1:
            raise CheckError(
                f"'{name}': 'same' must relate {member.name} to one other variable",
                advice="such as order(other, member).is_('MERGED')",
            )
        (other,) = others
        chosen = self.boolean(
            name, *(self._set_of(v) for v in (*keys, member)), derived=True
        )  # fmt: skip
        first = chosen(*keys, member).is_("TRUE")
        before = (
            self._declared_before(name, member)(other, member)
            if earlier is None
            else earlier(*keys, other, member)
        )
        both = ir.iff(when, renamed(when, {member: other}))
        self.require(ir.implies(first, when), f"{name}: fulfils the condition")
        self.require(ir.implies(first & before, ~same), f"{name}: is the first")
        self.require(
            ir.implies(when, first | ir.some(other, before & same)), f"{name}: there is one"
        )
        if not agreed:
            self.require(ir.implies(same, both), f"{name}: classes agree")
        return chosen

    def _declared_before(self, name: str, member: ir.Variable) -> ir.Property:
        items = [row[0] for row in self._set_of(member).rows]
        rows = [(e, d) for at, d in enumerate(items) for e in items[:at]]
        return self.relation(f"{name}: declared before", rows, arity=2)

    def _set_of(self, variable: ir.Variable) -> ir.Property:
        if variable.binding.property.arity != 1:
            raise CheckError(f"'{variable.name}' must be a variable of a set, not of a relation")
        return variable.binding.property

    def compose(self, choice: ir.Choice, table: Mapping[str, Sequence[str]]) -> None:
        """A composition table for a choice between two objects: row u, column v (in the order of
        the choice's values) lists what (a, c) may be where (a, b) is u and (b, c) is v; '*' is
        anything."""
        if choice.inverse is None:
            raise CheckError(
                f"'{choice.name}' cannot be composed",
                advice="only symmetric and antisymmetric choices between two objects compose",
            )
        if set(table) != set(choice.values) or any(len(r) != len(table) for r in table.values()):
            raise CheckError(f"the composition table of '{choice.name}' has not all its values")
        rows = tuple(
            tuple(_entry(choice, text) for text in table[str(value)]) for value in choice.values
        )
        self._name(f"composition of {choice.name}")
        self.constraints.append(ir.Composition(choice, rows))

    def table(
        self, terms: Sequence[ir.Chosen], rows: Iterable[Sequence[ir.Value]], name: str = ""
    ) -> None:
        """The terms together take one of the rows of values, for all objects of their variables."""
        listed = tuple(dict.fromkeys(tuple(row) for row in rows))
        for row in listed:
            if len(row) != len(terms):
                raise CheckError(f"a row of {len(row)} values for {len(terms)} terms")
            for term, value in zip(terms, row, strict=True):
                term.choice.bits([value])
        self.constraints.append(ir.Table(self._constraint(name), tuple(terms), listed))

    def equal_product(self, total: ir.Chosen, part: ir.Chosen, name: str = "") -> None:
        """`total` is the product of `part` over all objects of the variables that only `part` has.

        Unlike a counter this knows the *set* of possible products: 6 is no product of 4s and 5s."""
        self._equation(total, "product", part, name)

    def equal_sum(self, total: ir.Chosen, part: ir.Chosen, name: str = "") -> None:
        """`total` is the sum of `part` over all objects of the variables that only `part` has."""
        self._equation(total, "sum", part, name)

    def _equation(self, total: ir.Chosen, kind: ir.Kind, part: ir.Chosen, name: str) -> None:
        lowest = 1 if kind == "product" else 0
        for term in (total, part):
            if not term.choice.is_integer or any(int(v) < lowest for v in term.choice.values):
                raise CheckError(f"a {kind} is of integers of at least {lowest}")
        self.constraints.append(ir.Equation(self._constraint(name), kind, total, part))


def _inverse(
    name: str, values: tuple[str, ...], pairs: Mapping[str, str], arguments: tuple[ir.Property, ...]
) -> tuple[int, ...]:
    if len(arguments) != 2 or arguments[0] is not arguments[1] or arguments[0].arity != 1:
        raise CheckError(f"'{name}' is between two objects of one set, or has no symmetry")
    both = {**{v: v for v in values}, **pairs, **{v: u for u, v in pairs.items()}}
    if set(both) != set(values) or any(both[both[v]] != v for v in values):
        raise CheckError(f"the inverses of '{name}' are not pairs of its values")
    return tuple(values.index(both[v]) for v in values)


def _entry(choice: ir.Choice, text: str) -> int:
    return choice.bits(choice.values if text == "*" else text.split())
