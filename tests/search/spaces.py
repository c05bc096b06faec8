"""Random small spaces that use every kind of declaration."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench.common.narrowed import of
from tests.search.brute import raw_size

from warploom.search.space.build import Space, amount
from warploom.search.space.ir import (
    Choice,
    Counter,
    Sentence,
    Term,
    Variable,
    every,
    iff,
    implies,
    some,
)

LETTERS = "ABCD"


class _TooLargeError(Exception):
    """There would be too much to try."""


class Generator:
    def __init__(self, seed: int, most: int = 3000, objects: int = 3) -> None:
        self.random = random.Random(seed)
        self.most = most
        self.count = objects

    def space(self) -> Space:
        """Choices that multiply to at most `most`, then constraints on them."""
        while True:
            space = self.choices()
            if raw_size(space) <= self.most:
                try:
                    self.constraints(space)
                except _TooLargeError:
                    continue
                return space

    # -- declarations ------------------------------------------------------------------------------

    def choices(self) -> Space:
        pick = self.random
        space = Space("random")
        items = [f"x{n}" for n in range(pick.randint(2, self.count))]
        self.things = space.objects("things", items)
        few = pick.sample(items, pick.randint(1, len(items)))
        self.few = space.objects("few", sorted(few))
        pairs = [(a, b) for a in items for b in items if a != b and pick.random() < 0.5]
        self.linked = space.relation("linked", pairs, arity=2)
        self.weight = space.number("weight", {item: pick.randint(1, 4) for item in items})
        self.flag = space.flag("active", self.few) if pick.random() < 0.35 else None
        if self.flag is None and pick.random() < 0.3:  # one flag for several objects
            owners = space.objects("owners", ["own", "other"][: pick.randint(1, 2)])
            rows = [(pick.choice(owners.rows)[0], *row) for row in self.few.rows]
            space.flag("there", owners, space.relation("governed", rows))
        self.optional = bool(space.flags)
        self.enums: list[Choice] = []
        self.integers: list[Choice] = []
        self.relations: list[Choice] = []
        for number in range(pick.randint(1, 2)):
            self.enum(space, f"kind{number}")
        if pick.random() < 0.6:
            self.integer(space, "size")
        if pick.random() < 0.6:
            self.relation(space, "between")
        return space

    def enum(self, space: Space, name: str) -> None:
        letters = LETTERS[: self.random.randint(2, 4)]
        over = self.random.choice([self.things, self.few])
        self.enums.append(space.choice(name, over, values=list(letters)))

    def integer(self, space: Space, name: str) -> None:
        pick = self.random
        over = pick.choice([self.things, self.few])
        lists = {
            row[0]: sorted(pick.sample([1, 2, 3, 4, 6, 8], pick.randint(1, 3))) for row in over.rows
        }
        self.integers.append(space.integer(name, over, values=lists))

    def relation(self, space: Space, name: str) -> None:
        pick = self.random
        kind = pick.choice(["plain", "symmetric", "antisymmetric"])
        if kind == "plain":
            made = space.choice(name, self.few, self.few, values="P Q")
        elif kind == "symmetric":
            made = space.choice(name, self.things, self.things, values="P Q R", symmetric=True)
        else:
            made = space.choice(
                name, self.things, self.things, values="P Q R", antisymmetric={"P": "Q"}
            )
        self.relations.append(made)

    # -- constraints -------------------------------------------------------------------------------

    def constraints(self, space: Space) -> None:
        self.counters: list[Counter] = []
        for number in range(self.random.randint(0, 2)):
            self.counter(space, f"counter{number}")
        if self.relations and self.random.random() < 0.5:
            self.composition(space)
        if self.random.random() < 0.3:
            self.table(space)
        if self.integers and self.random.random() < 0.4:
            self.equation(space)
        if self.relations and self.random.random() < 0.3:
            self.quotient(space)
        for _ in range(self.random.randint(1, 4)):
            space.require(self.sentence())

    def quotient(self, space: Space) -> None:
        """Of what need not be an equivalence: it only has to mean the same everywhere."""
        same, kind = self.relations[0], self.enums[0]
        over = self.few if same.inverse is None else self.things
        d, e = over.each("d", "e")
        if not self.usable(kind, [d]) or len(over.rows) < 2:
            return
        first = space.quotient(
            "first", d, when=kind(d).is_(*self.values(kind)), same=same(e, d).is_("P")
        )
        if raw_size(space) > 4 * self.most:
            raise _TooLargeError
        self.enums.append(first)

    def variables(self, count: int) -> list[Variable]:
        names = iter("abcdefgh")
        found: list[Variable] = []
        while len(found) < count:
            kind = self.random.random()
            if kind < 0.2 and self.linked.rows:
                found += self.linked.row(next(names), next(names))
            else:
                found.append(self.random.choice([self.things, self.few]).one(next(names)))
        return found

    def usable(self, over: Choice, variables: list[Variable]) -> list[Variable]:
        """Variables whose objects all have this choice."""
        allowed = {item for instance in over.instances for item in instance}
        if over.arity == 2 and len(allowed) < 2:
            return []
        return [
            v for v in variables if all(row[v.column] in allowed for row in v.binding.property.rows)
        ]

    def literal(self, variables: list[Variable]) -> Sentence:
        pick = self.random
        makers: list[Callable[[], Sentence | None]] = [
            lambda: self.enum_literal(pick.choice(self.enums), variables),
            lambda: self.enum_literal(pick.choice(self.enums), variables),
            lambda: self.pair_literal(variables),
            lambda: self.integer_literal(variables),
            lambda: self.equal_literal(variables),
            lambda: self.counter_literal(variables),
            lambda: self.known(variables),
            lambda: self.flag_literal(variables),
        ]
        for _ in range(20):
            made = pick.choice(makers)()
            if made is not None:
                return made
        return self.few(variables[0])

    def values(self, choice: Choice) -> list[str]:
        count = self.random.randint(1, len(choice.values) - 1)
        return [str(v) for v in self.random.sample(choice.values, count)]

    def enum_literal(self, choice: Choice, variables: list[Variable]) -> Sentence | None:
        able = self.usable(choice, variables)
        if not able:
            return None
        return choice(self.random.choice(able)).is_(*self.values(choice))

    def flag_literal(self, variables: list[Variable]) -> Sentence | None:
        return None if self.flag is None else self.enum_literal(self.flag, variables)

    def pair_literal(self, variables: list[Variable]) -> Sentence | None:
        if not self.relations:
            return None
        able = self.usable(self.relations[0], variables)
        if len(able) < 2:
            return None
        return self.relations[0](*self.random.sample(able, 2)).is_(*self.values(self.relations[0]))

    def integer_literal(self, variables: list[Variable]) -> Sentence | None:
        if not self.integers:
            return None
        pick = self.random
        able = self.usable(self.integers[0], variables)
        if not able:
            return None
        size = self.integers[0]
        one = size(pick.choice(able))
        match pick.randint(0, 6):
            case 5:
                return self.weight(pick.choice(variables)) < one
            case 6:
                return self.weight(pick.choice(variables)) >= pick.randint(1, 4)
            case 0:
                return one <= pick.randint(1, 8)
            case 1:
                return one > self.weight(pick.choice(variables))
            case 2:
                return one.ne(pick.choice([1, 2, 4]))
            case 3:
                return one >= size(pick.choice(able))
            case _:
                return one.eq(size(pick.choice(able)))

    def equal_literal(self, variables: list[Variable]) -> Sentence | None:
        choice = self.random.choice(self.enums + self.relations)
        able = self.usable(choice, variables)
        if len(able) < 2:
            return None
        ways = [self.random.sample(able, choice.arity) for _ in range(2)]
        return choice(*ways[0]).eq(choice(*ways[1]))

    def counter_literal(self, variables: list[Variable]) -> Sentence | None:
        if not self.counters:
            return None
        pick = self.random
        counter = pick.choice(self.counters)
        terms = []
        for each in (counter, pick.choice(self.counters)):
            if each.per:
                able = [v for v in variables if v.binding.property in (self.things, self.few)]
                if not able:
                    return None
                terms.append(each(pick.choice(able)))
            else:
                terms.append(each())
        others: list[Term] = [pick.randint(0, 8), terms[1], pick.randint(0, 20)]
        other = pick.choice(others)
        match pick.randint(0, 4):
            case 0:
                return terms[0] >= other
            case 1:
                return terms[0].eq(other)
            case 2:
                return terms[0].ne(other)
            case _:
                return terms[0] <= other

    def known(self, variables: list[Variable]) -> Sentence | None:
        if len(variables) < 2:
            return None
        found = self.linked(*self.random.sample(variables, 2))
        return ~found if self.random.random() < 0.5 else found

    def sentence(self) -> Sentence:
        pick = self.random
        variables = self.variables(pick.choice([1, 1, 2, 2, 3]))
        parts = [self.literal(variables) for _ in range(pick.randint(1, 3))]
        match pick.randint(0, 6):
            case 0:
                return implies(parts[0], parts[-1])
            case 1:
                return iff(parts[0], parts[-1])
            case 2:
                return self.quantified(variables, parts[0])
            case 3 if len(parts) > 1:
                return (parts[0] & parts[1]) | parts[-1]
            case _:
                whole = parts[0]
                for part in parts[1:]:
                    whole = whole | part
                return whole

    def quantified(self, variables: list[Variable], part: Sentence) -> Sentence:
        pick = self.random
        choice = pick.choice(self.enums)
        over = self.things if self.usable(choice, [self.things.one("z")]) else self.few
        inner = over.one("z")
        if self.flag is not None and over is self.few and pick.random() < 0.3:
            choice = self.flag
        body: Sentence = choice(inner).is_(*self.values(choice))
        if self.integers and self.usable(self.integers[0], [inner]) and pick.random() < 0.3:
            body = self.integers[0](inner) <= pick.randint(1, 4)
        elif not self.optional and pick.random() < 0.1:
            body = self.few(inner)
        if self.linked.rows and pick.random() < 0.5:
            body = body & self.linked(inner, pick.choice(variables))
        return part | (some(inner, body) if pick.random() < 0.6 else every(inner, ~body))

    def counter(self, space: Space, name: str) -> None:
        pick = self.random
        ways: list[Variable | tuple[Variable, ...]] = [(), (), self.things.one("k")]
        per = pick.choice(ways)
        keys = per if isinstance(per, tuple) else (per,)
        inner = self.variables(1)
        variables = [*keys, *inner]
        amounts = []
        for _ in range(pick.randint(1, 2)):
            when = self.conjunction(variables)
            amounts.append(amount(self.amount_of(variables), when))
        kind = pick.choice([space.total, space.product])
        self.counters.append(kind(name, *amounts, per=per, base=pick.randint(1, 2)))

    def amount_of(self, variables: list[Variable]) -> Term:
        pick = self.random
        options: list[Term] = [pick.randint(1, 3), self.weight(pick.choice(variables))]
        if self.integers:
            options += [self.integers[0](v) for v in self.usable(self.integers[0], variables)] * 2
        options += [c() for c in self.counters if not c.per]
        return pick.choice(options)

    def conjunction(self, variables: list[Variable]) -> Sentence:
        pick = self.random
        makers = [
            lambda: self.enum_literal(pick.choice(self.enums), variables),
            lambda: self.pair_literal(variables),
            lambda: self.known(variables),
            lambda: self.limit(variables),
        ]
        found = [made for made in (maker() for maker in makers) if made is not None]
        whole = pick.choice(found) if found else self.few(variables[0])
        if pick.random() < 0.4:
            more = pick.choice(makers)()
            whole = whole if more is None else whole & more
        return whole

    def limit(self, variables: list[Variable]) -> Sentence | None:
        able = self.usable(self.integers[0], variables) if self.integers else []
        return self.integers[0](self.random.choice(able)) <= 3 if able else None

    def composition(self, space: Space) -> None:
        choice = self.relations[0]
        if choice.inverse is None:
            return
        rows = {}
        for value in choice.values:
            rows[of(str, value)] = [
                " ".join(self.random.sample(["P", "Q", "R"], self.random.randint(1, 3)))
                for _ in choice.values
            ]
        space.compose(choice, rows)

    def table(self, space: Space) -> None:
        pick = self.random
        v = self.few.one("t")
        able = [c for c in self.enums + self.integers if self.usable(c, [v])]
        chosen = list(dict.fromkeys(pick.choice(able) for _ in range(pick.randint(1, 3))))
        rows = [[pick.choice(c.values) for c in chosen] for _ in range(pick.randint(1, 6))]
        space.table([c(v) for c in chosen], rows)

    def equation(self, space: Space) -> None:
        """One number is the sum or product of the sizes of some things."""
        size = self.integers[0]
        part = self.few.one("p")
        if not self.usable(size, [part]):
            return
        top = space.objects("tops", ["top"])
        whole = space.integer("whole", top, values=[1, 2, 4, 5, 6, 8, 12])
        equal = self.random.choice([space.equal_product, space.equal_sum])
        equal(whole(top.one("w")), size(part))


def random_space(seed: int, most: int = 3000, objects: int = 3) -> Space:
    return Generator(seed, most, objects).space()
