"""Losses: exact amounts, composition, order, groups, adjacency."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, lower, upper
from discreet.privacy import GDP, ZCDP, ApproxDP, Loss, Neighbours, PureDP, convert
from tests.cases import every

amounts = st.fractions(min_value=0, max_value=20, max_denominator=1000)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 100), max_denominator=10**6)
KINDS: dict[str, st.SearchStrategy[Loss]] = {
    "pure": st.builds(PureDP, amounts),
    "approx": st.builds(ApproxDP, amounts, deltas),
    "zcdp": st.builds(ZCDP, amounts, deltas),
    "gdp": st.builds(GDP, amounts) | st.builds(GDP.from_square, amounts),
}
losses = st.one_of(*KINDS.values())
pairs = st.one_of(*(st.tuples(kind, kind) for kind in KINDS.values()))
triples = st.one_of(*(st.tuples(kind, kind, kind) for kind in KINDS.values()))


# Composition


def test_a_tenth_ten_times_is_one_and_not_more() -> None:
    assert PureDP(0.1) * 10 == PureDP(1)
    assert sum([PureDP(0.1)] * 10, start=PureDP(0)) <= PureDP(1)
    assert not sum([PureDP(0.1)] * 11, start=PureDP(0)) <= PureDP(1)


def test_pure_and_approximate_add_up_in_either_order() -> None:
    assert PureDP(1) + ApproxDP(2, 1e-6) == ApproxDP(3, 1e-6) == ApproxDP(2, 1e-6) + PureDP(1)


def test_squares_of_mu_add_up_exactly() -> None:
    assert GDP(1) + GDP(1) == GDP.from_square(2) == GDP(1) * 2
    assert GDP.from_square(2).mu ** 2 >= 2
    assert GDP.from_square(2).mu < Fraction(math.sqrt(2)) + Fraction(1, 10**15)
    assert (GDP.from_square(2) * 2).mu == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [(PureDP(1), ZCDP(1)), (ZCDP(1), ApproxDP(1, 0)), (GDP(1), ZCDP(1)), (PureDP(1), GDP(1))],
)
def test_other_mixtures_are_refused_with_help(first: Loss, second: Loss) -> None:
    for one, other in ((first, second), (second, first)):
        with pytest.raises(TypeError, match="do not add up"):
            one + other


def test_losses_add_up_with_losses_only() -> None:
    for wrong in (1, 0.5, "epsilon=1", None):
        with pytest.raises(TypeError, match="unsupported operand"):
            PureDP(1) + wrong  # type: ignore[operator]
        with pytest.raises(TypeError, match="not supported between"):
            _ = PureDP(1) <= wrong  # type: ignore[operator]
        with pytest.raises(TypeError, match="not supported between"):
            _ = PureDP(1) > wrong  # type: ignore[operator]


@pytest.mark.parametrize("count", [-1, 1.0, True, "2", 10**400, None])
def test_repetitions_are_whole_numbers(count: object) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        PureDP(1) * count  # type: ignore[operator]
    assert (refusal.value.name, refusal.value.value) == ("count", count)


def test_a_composition_that_reaches_delta_one_is_refused() -> None:
    with pytest.raises(InvalidParameter) as refusal:
        ApproxDP(0, 0.5) + ApproxDP(0, 0.5)
    assert (refusal.value.name, refusal.value.value, refusal.value.condition) == ("delta", 1, "< 1")


def test_long_sums_stay_short_and_err_upwards() -> None:
    exact, total = Fraction(0), PureDP(0)
    for denominator in range(10_001, 12_001, 2):  # their least common multiple has thousands of bits
        exact += Fraction(1, denominator)
        total = total + PureDP(Fraction(1, denominator))
    assert total.epsilon.denominator.bit_length() <= 1 << 11 < exact.denominator.bit_length()
    assert exact < total.epsilon < exact * (1 + Fraction(1, 2**200))


@given(pairs)
def test_composition_is_commutative(pair: tuple[Loss, Loss]) -> None:
    assert pair[0] + pair[1] == pair[1] + pair[0]


@given(triples)
def test_composition_is_associative(triple: tuple[Loss, Loss, Loss]) -> None:
    a, b, c = triple
    assert (a + b) + c == a + (b + c)


@given(losses, st.integers(min_value=0, max_value=20))
def test_repetition_is_repeated_addition(loss: Loss, count: int) -> None:
    assert sum([loss] * count, start=loss * 0) == loss * count == count * loss
    assert (loss * 0).is_zero


@given(pairs)
def test_composition_never_costs_less(pair: tuple[Loss, Loss]) -> None:
    assert pair[0] <= pair[0] + pair[1]


# Order


@given(losses)
def test_order_is_reflexive(loss: Loss) -> None:
    same = copy.copy(loss)
    assert loss <= same
    assert loss >= same
    assert not loss < same
    assert not loss > same


@given(losses, losses, losses)
def test_order_is_transitive_across_kinds(a: Loss, b: Loss, c: Loss) -> None:
    if a <= b <= c:
        assert a <= c


@given(triples)
def test_order_is_transitive_within_a_kind(triple: tuple[Loss, Loss, Loss]) -> None:
    a, b, c = triple
    assert a <= a + b <= a + b + c
    if a <= b <= c:
        assert a <= c


@given(pairs)
def test_order_is_antisymmetric_within_a_kind(pair: tuple[Loss, Loss]) -> None:
    a, b = pair
    assert (a <= b <= a) == (a == b)


@given(losses, losses)
def test_the_four_comparisons_agree(a: Loss, b: Loss) -> None:
    assert (a >= b) == (b <= a)
    assert (a > b) == (b < a)
    assert (a < b) == (a <= b and not b <= a)


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        (PureDP(1), PureDP(2)),
        (PureDP(1), ApproxDP(1, 1e-9)),
        (PureDP(1), ZCDP(0.5, 1e-9)),
        (ApproxDP(1, 1e-6), ApproxDP(1, 1e-5)),
        (ApproxDP(1, 1e-6), ZCDP(0.5, 1e-6)),
        (GDP(1), ZCDP(0.5)),
        (GDP.from_square(2), GDP(1.5)),
        (ZCDP(0.5), ZCDP(0.5, 1e-6)),
        (PureDP(0), GDP(1)),
        (GDP(0), PureDP(1)),
        (ZCDP(0), ApproxDP(0, 0.1)),
    ],
)
def test_stronger_guarantees_imply_weaker_ones(stronger: Loss, weaker: Loss) -> None:
    assert stronger <= weaker
    assert stronger < weaker
    assert not weaker <= stronger


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ApproxDP(1, 1e-6), ApproxDP(2, 1e-7)),
        (PureDP(1), ZCDP(0.49)),
        (ZCDP(0.1), PureDP(10)),
        (ZCDP(0.1), GDP(10)),
        (GDP(1), PureDP(10)),
        (GDP(1), ZCDP(0.49)),
        (PureDP(1), GDP(10)),
        (ApproxDP(1, 1e-6), PureDP(9)),
        (ApproxDP(1, 1e-6), ZCDP(9)),
    ],
)
def test_what_no_elementary_theorem_orders_is_incomparable(one: Loss, other: Loss) -> None:
    assert not one <= other
    assert not other <= one
    assert not one < other
    assert not one > other


def test_approximate_with_delta_zero_is_pure() -> None:
    assert PureDP(1) <= ApproxDP(1, 0) <= PureDP(1)
    assert not PureDP(1) < ApproxDP(1, 0)


# Groups and adjacency


@pytest.mark.parametrize(("size", "delta"), [(2, "3.718e-5"), (3, "1.111e-4"), (5, "8.579e-4"), (10, "1.282e-1")])
def test_group_deltas_of_theory_3_4(size: int, delta: str) -> None:
    group = ApproxDP(1, 1e-5).group(size)
    assert group.epsilon == size
    assert f"{float(group.delta):.3e}" == f"{float(delta):.3e}"


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 3), Fraction(1, 10**6), Fraction(1, 10**290)])
@pytest.mark.parametrize("size", [2, 7])
def test_group_delta_is_the_sum_along_the_path_rounded_up(epsilon: Fraction, size: int) -> None:
    delta = Fraction(1, 10**9)

    def along_the_path(digits: int) -> Enclosure:
        terms = [Enclosure.of(i * epsilon, digits).exp() * delta for i in range(size)]
        return sum(terms[1:], start=terms[0])

    grouped = ApproxDP(epsilon, delta).group(size).delta
    assert lower(along_the_path, 700) <= grouped <= upper(along_the_path, 700) * (1 + Fraction(1, 10**38))


def test_group_of_epsilon_zero_adds_deltas() -> None:
    assert ApproxDP(0, 1e-3).group(7) == ApproxDP(0, 7e-3)
    assert ApproxDP(1, 0).group(10**6) == ApproxDP(10**6, 0)


@pytest.mark.parametrize("loss", [ApproxDP(1, 1e-5), ApproxDP(0, 1e-5), ApproxDP(1e200, 1e-300)])
def test_a_vacuous_group_bound_is_refused(loss: ApproxDP) -> None:
    with pytest.raises(InvalidParameter, match="says nothing") as refusal:
        loss.group(10**6)
    assert (refusal.value.name, refusal.value.value) == ("size", 10**6)


def test_other_groups() -> None:
    assert PureDP(0.1).group(3) == PureDP("0.3")
    assert ZCDP(0.5).group(3) == ZCDP(4.5)
    assert GDP(0.5).group(3) == GDP(1.5)
    assert GDP.from_square(2).group(3) == GDP.from_square(18)


def test_groups_of_approximate_zcdp_are_refused_with_the_remedy() -> None:
    assert ZCDP(1, 1e-6).group(1) == ZCDP(1, 1e-6)
    with pytest.raises(InvalidParameter, match=r"Convert to \(epsilon, delta\) first") as refusal:
        ZCDP(1, 1e-6).group(2)
    assert (refusal.value.name, refusal.value.value) == ("delta", Fraction(1, 10**6))


@every("size", [0, -1, 1.5, True, 10**400])
@every("loss", [PureDP(1), ApproxDP(1, 1e-6), ZCDP(1), GDP(1)])
def test_groups_have_whole_sizes(loss: Loss, size: object) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        loss.group(size)  # type: ignore[arg-type]
    assert refusal.value.name == "size"


@given(losses)
def test_a_group_of_one_is_one_unit(loss: Loss) -> None:
    assert loss.group(1) == loss


small = st.one_of(
    st.builds(PureDP, amounts),
    st.builds(ZCDP, amounts),
    st.builds(GDP, amounts),
    st.builds(ApproxDP, st.fractions(0, 1, max_denominator=100), st.just(Fraction(1, 10**9))),
)


@given(small, st.integers(1, 10), st.integers(0, 4))
def test_larger_groups_get_weaker_guarantees(loss: Loss, size: int, more: int) -> None:
    assert loss.group(size) <= loss.group(size + more)


@given(small, st.integers(1, 3), st.integers(1, 3))
def test_groups_of_groups(loss: Loss, inner: int, outer: int) -> None:
    both, slack = loss.group(inner * outer), loss.group(inner).group(outer)
    if isinstance(both, ApproxDP) and isinstance(slack, ApproxDP):  # equal up to rounding up in the 40th digit
        assert both.epsilon == slack.epsilon
        assert abs(both.delta - slack.delta) <= both.delta / 10**37
    else:
        assert both == slack


def test_replacing_is_removing_and_adding() -> None:
    """Theory 0.1: (2 epsilon, (1 + e^epsilon) delta), 4 rho, 2 mu."""
    both = {"given": Neighbours.ADD_REMOVE, "wanted": Neighbours.REPLACE}
    assert convert(PureDP(0.5), **both) == PureDP(1)
    assert convert(ZCDP(0.5), **both) == ZCDP(2)
    assert convert(GDP(0.5), **both) == GDP(1)
    approximate = convert(ApproxDP(1, 1e-6), **both)
    assert approximate.epsilon == 2
    assert float(approximate.delta) == pytest.approx((1 + math.e) * 1e-6, rel=1e-15)


@pytest.mark.parametrize("relation", list(Neighbours))
def test_converting_to_the_same_relation_changes_nothing(relation: Neighbours) -> None:
    loss = ZCDP(1, 1e-6)
    assert convert(loss, given=relation, wanted=relation.value) is loss


def test_replace_does_not_imply_add_remove() -> None:
    with pytest.raises(InvalidParameter, match="number of units may be public") as refusal:
        convert(PureDP(0), given="replace", wanted="add_remove")
    assert (refusal.value.name, refusal.value.value) == ("wanted", "add_remove")
    with pytest.raises(InvalidParameter):
        convert(1, given="replace", wanted="replace")  # type: ignore[type-var]


# Shape


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (PureDP(0.1), "epsilon=0.1"),
        (PureDP(0), "epsilon=0"),
        (PureDP(Fraction(1, 3)), "epsilon=0.333334"),
        (PureDP(1_000_000), "epsilon=1000000"),
        (ApproxDP(1, 1e-6), "epsilon=1, delta=1e-06"),
        (ZCDP(0.5), "rho=0.5"),
        (ZCDP(0.5, 1e-9), "rho=0.5, delta=1e-09"),
        (GDP(0.25), "mu=0.25"),
        (GDP.from_square(2), "mu=1.41422"),
    ],
)
def test_text_is_short_and_never_understates(loss: Loss, text: str) -> None:
    assert str(loss) == text


@given(losses)
def test_losses_are_values(loss: Loss) -> None:
    assert eval(repr(loss), {**globals()}) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss == copy.deepcopy(loss)
    assert len({loss, copy.copy(loss)}) == 1


def test_losses_are_frozen_and_abstract() -> None:
    with pytest.raises(AttributeError):
        PureDP(1).epsilon = Fraction(0)  # type: ignore[misc]
    with pytest.raises(TypeError, match="abstract"):
        Loss()  # type: ignore[abstract]
