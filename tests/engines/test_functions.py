"""RT-039: every function of the table on every value that makes engines fail or disagree; then whole expressions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory
from discreet.errors import InvalidParameter
from discreet.plan.expressions.functions import FUNCTIONS, Signature
from discreet.plan.model.nodes import Expression, FunctionCall
from discreet.plan.model.types import Type
from tests.engines.tables import (
    EDGES,
    PRINTERS,
    SPARK,
    B,
    Bench,
    D,
    F,
    N,
    S,
    T,
    arrow,
    call,
    col,
    lit,
    sides,
    value_of,
)
from tests.open_groups import unsealed

AT_ONCE = [side for side in sides(PRINTERS) if side.id != SPARK]  # which computes many of them in one statement
SHORT: dict[Type, int] = {T: 12, F: 12, N: 10}  # of each list, where three arguments are combined
SIGNS = ["", " ", "a", "ab", "\0\n", "\u0301e", "\u00a0\t x", "ßİ", "-/ ]^\\"]
PATTERNS = ["", "%", "_", "a%", "%b", "%a%", "a_b", "\\", "a\\%", "_%", "%%", "it's", "\0", "é", "_____x", "'; DROP"]

MATCHES = [r"a", r"\Aa", r"b\z", r"\A[\x{0}-\x{10ffff}]*\z", r"(?:a|\x{25})+", r"\ba\b", r"[0-9]{1,3}", r"\x{0}|\x{e9}"]
EXTRACTS = [r"(a)", r"\A([\x{0}-\x{10ffff}])", r"([0-9]+?)", r"(?:a|(b))+", r"(\b)", r"([a-z]*)\z"]
LISTS = {
    "like": PATTERNS,
    "matches": MATCHES,
    "extract": EXTRACTS,
    **dict.fromkeys(("strip", "strip_left", "strip_right"), SIGNS),
}
"""What the second argument, a literal, is tried with."""


def signatures() -> list[tuple[str, Signature]]:
    return [(name, signature) for name, function in FUNCTIONS.items() for signature in function.signatures]


def calls(name: str, signature: Signature) -> Iterator[FunctionCall]:
    """The function on columns a0, a1, ...; on literals where it takes only those."""
    kinds = signature.arguments + signature.arguments[-1:] * (signature.variadic and name != "in")
    columns = [col(f"a{i}", kind) for i, kind in enumerate(kinds)]
    if name in LISTS:
        yield from (call(name, signature.result, columns[0], lit(written, T)) for written in LISTS[name])
    elif name == "in":
        values = [lit(v, kinds[0]) for v in EDGES[kinds[0]] if v is not None]
        yield call("in", B, columns[0], *values[:4])
        yield call("in", B, columns[0], *values[1:])
    else:
        yield call(name, signature.result, *columns)


def arguments(signature: Signature) -> tuple[Type, ...]:
    return signature.arguments + signature.arguments[-1:] * signature.variadic


@pytest.mark.ci
@pytest.mark.sampled(4)
@pytest.mark.parametrize("bench", AT_ONCE, indirect=True)
@pytest.mark.parametrize(
    "kinds",
    sorted({arguments(signature) for _, signature in signatures()}, key=str),
    ids=lambda kinds: "-".join(kind.value for kind in kinds),
)
def test_every_function_on_every_edge(bench: Bench, kinds: tuple[Type, ...]) -> None:
    lists = [EDGES[kind][: SHORT.get(kind) if len(kinds) > 2 else None] for kind in kinds]
    rows = [
        {"id": i, **{f"a{j}": value for j, value in enumerate(values)}}
        for i, values in enumerate(itertools.product(*lists))
    ]
    bench.load(rows, {"id": N, **{f"a{j}": kind for j, kind in enumerate(kinds)}})
    for name, signature in signatures():
        if arguments(signature) == kinds:
            for expression in calls(name, signature):
                bench.agreed(value_of(expression))


def test_an_int_serves_as_a_float(bench: Bench) -> None:
    bench.load([{"id": i, "a": v} for i, v in enumerate(EDGES[N])], {"id": N, "a": N})
    for expression in (
        call("divide", F, col("a", N), lit(3, N)),
        call("add", F, col("a", N), lit(0.5, F)),
        call("greatest", F, col("a", N), lit(2.5, F)),
        call("if", F, call("is_null", B, col("a", N)), col("a", N), lit(0.5, F)),
        call("less", B, col("a", N), lit(9.3e18, F)),
        call("equal", B, col("a", N), lit(float((1 << 62) + 1), F)),
    ):
        bench.agreed(value_of(expression))


def test_like_takes_no_longer_the_more_often_it_could_match(bench: Bench) -> None:
    """A matcher that tries every way to share the text among the signs would need 20,000^4 steps."""
    bench.load([{"id": i, "a": "a" * 20_000 + end} for i, end in enumerate(("", "b", "\nb"))], {"id": N, "a": T})
    for pattern, found in (("%a%a%a%a%b", [False, True, True]), ("%a_%a_%a_%a_%b", [False, True, True])):
        answer = bench.agreed(value_of(call("like", B, col("a", T), lit(pattern, T))))
        assert sorted(answer) == list(enumerate(found))


def test_null_literals_have_the_type_of_their_place(bench: Bench) -> None:
    bench.load([{"id": 1}], {"id": N})
    for kind in Type:
        bench.agreed(value_of(call("coalesce", kind, lit(None, kind), lit(EDGES[kind][1], kind))))


COLUMNS = {"id": N, "n": N, "m": N, "x": F, "y": F, "b": B, "s": T, "t": T, "d": D, "z": S}


def edge_rows() -> list[dict[str, Any]]:
    """Rows in which edge values of all types meet."""
    return [
        {
            "id": i,
            **{
                name: EDGES[kind][(i * 7 + i // 3 + 5 * j) % len(EDGES[kind])]
                for j, (name, kind) in enumerate(COLUMNS.items())
                if name != "id"
            },
        }
        for i in range(60)
    ]


@cache
def both() -> tuple[Memory, DuckDB]:
    rows = edge_rows()
    memory, engine = Memory(), DuckDB(threads=1)
    memory.register("t", rows, COLUMNS)
    engine.register("t", arrow(rows, COLUMNS), COLUMNS)
    return memory, engine


def literals(kind: Type) -> st.SearchStrategy[Expression]:
    finite = [value for value in EDGES[kind] if kind is not F or value is None or abs(value) < float("inf")]
    return st.sampled_from(finite).map(lambda value: lit(value, kind))


def leaves(kind: Type) -> st.SearchStrategy[Expression]:
    return st.sampled_from([col(name, k) for name, k in COLUMNS.items() if k is kind]) | literals(kind)


@cache
def expressions(kind: Type, depth: int) -> st.SearchStrategy[Expression]:
    if depth == 0:
        return leaves(kind)
    made = [
        st.tuples(*(expressions(k, depth - 1) for k in signature.arguments)).map(
            lambda arguments, name=name: FunctionCall(name, arguments, kind)  # type: ignore[misc]
        )
        for name, signature in signatures()
        if signature.result is kind and name not in ("in", *LISTS)
    ]
    return st.one_of(leaves(kind), st.one_of(made))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", list(Type), ids=lambda kind: kind.value)
@given(data=st.data())
def test_random_expressions_are_total_and_mean_the_same(kind: Type, data: st.DataObject) -> None:
    expression = data.draw(expressions(kind, 4))
    memory, engine = both()
    reading = value_of(expression)
    assert unsealed(engine.read(reading)) == unsealed(memory.read(reading))


def test_text_of_a_statement_grows_with_the_plan_not_with_its_power() -> None:
    memory, engine = both()
    expression: Expression = col("x", F)
    for _ in range(100):
        expression = call("null_if", F, call("divide", F, expression, lit(1.5, F)), expression)
    deep = value_of(expression)
    with pytest.raises(InvalidParameter):
        unsealed(engine.read(deep))
    expression = col("x", F)
    for _ in range(50):
        expression = call("divide", F, expression, lit(1.5, F))
    assert unsealed(engine.read(value_of(expression))) == unsealed(memory.read(value_of(expression)))


def test_what_is_not_in_the_table_is_refused_before_anything_is_read(bench: Bench) -> None:
    bench.load([{"id": 1, "n": 1, "m": 2, "s": "a", "t": "b"}], {"id": N, "n": N, "m": N, "s": T, "t": T})
    wrongs: list[Expression] = [
        call("error", N, lit(1, N)),
        call("add", N, col("s", T), lit(1, N)),
        call("add", F, col("n", N), lit(1, N)),
        call("read_bool", B, col("s", T)),
        call("like", B, col("s", T), col("t", T)),
        call("in", B, col("n", N), col("m", N)),
        col("absent", N),
        col("n", F),
        lit(1 << 63, N),
        lit(float("nan"), F),
        lit("\ud800", T),
        lit(True, N),
    ]
    bench.check_refused(*(value_of(wrong) for wrong in wrongs))
