"""People looked up in several releases: rates by brute force, the bound as a theorem, and a mutant without noise."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from discreet.attacks import Comparison, k_anonymised, k_anonymity, linkage, uniqueness
from discreet.attacks.attack import ceiling
from discreet.attacks.linkage.attribute_disclosure import Disclosure
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from tests.attacks.made import people

QUASI = ["zip", "birth", "sex"]
ROUNDS = 20


def _compared(seed: int = 1, count: int = 1500) -> Comparison:
    return uniqueness.compare(
        people(count), QUASI, sensitive="illness", epsilons=(0.1, 1, 10), rounds=ROUNDS, bits=SeededBits(seed)
    )


def _above(found: Comparison) -> list[str]:
    """Private releases whose rate exceeds its bound by more than four standard errors of a share of all guesses."""
    above = []
    for trial in found.private:
        bound, targets = trial.finding.bound, trial.finding.targets * ROUNDS
        assert bound is not None
        if trial.finding.success > bound + 4 * math.sqrt(bound * (1 - bound) / targets) + 1e-12:
            above.append(trial.defence)
    return above


def _told(found: Comparison, defence: str) -> Disclosure:
    finding = found[defence]
    assert isinstance(finding, Disclosure)
    return finding


def _majority(cells: list[Any], values: list[str], least: int = 1, k: int = 1) -> float:
    """The share told rightly by the commonest value of a cell, and the commonest of all where there is none."""
    common = Counter(values)
    first = {value: -place for place, value in enumerate(dict.fromkeys(values))}
    best = {}
    for cell in set(cells):
        counts = Counter(value for other, value in zip(cells, values, strict=True) if other == cell)
        shown = {v: n for v, n in counts.items() if n >= least} if sum(counts.values()) >= k else {}
        best[cell] = max(common, key=lambda v: (shown.get(v, 0), common[v], first[v]))
    return float(np.mean([best[cell] == value for cell, value in zip(cells, values, strict=True)]))


def test_open_releases_by_brute_force() -> None:
    table = people(400, areas=3, years=2, illnesses=4)
    coarse = {"zip": table["zip"], "sex": table["sex"]}
    found = uniqueness.compare(coarse | table, list(coarse), sensitive="illness", epsilons=(1,), rounds=1, k=90)
    cells = list(zip(*coarse.values(), strict=True))
    assert found.raw.success == pytest.approx(_majority(cells, table["illness"]))
    assert found["counts below 5 left out"].success == pytest.approx(_majority(cells, table["illness"], least=5))
    form = k_anonymised(coarse, list(coarse), k=90).form
    rows = [form[name].apply_to(np.array(column, dtype=object)) for name, column in coarse.items()]
    assert found["90-anonymous"].success == pytest.approx(
        _majority(list(zip(*rows, strict=True)), table["illness"], k=90)
    )


def test_rows_tell_nearly_everything_and_private_counts_stay_below_the_bound() -> None:
    found = _compared()
    assert found.raw.success > 0.99
    assert _told(found, "no defence").without < found.raw.baseline + 0.05  # illness depends on nothing here
    assert found["epsilon 0.1"].success < found.raw.baseline + 0.05
    assert found["epsilon 10"].success > 0.9  # a large epsilon protects nobody
    assert _above(found) == []
    for place, defence in ((0, "epsilon 0.1"), (-1, "epsilon 10")):
        assert found.ceiling[place][1] == pytest.approx(found[defence].bound)


def test_the_same_seed_repeats_everything() -> None:
    assert _compared(seed=5, count=200) == _compared(seed=5, count=200)
    assert _compared(seed=5, count=200) != _compared(seed=6, count=200)


def test_a_mechanism_without_noise_breaks_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Laplace, "release", lambda _self, value, bits=None: value)  # noqa: ARG005 - its signature
    assert set(_above(_compared())) == {"epsilon 0.1", "epsilon 1"}


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_private_rates_are_those_of_the_law(epsilon: float) -> None:
    """One cell has values a, a, b, another b: all outcomes of the noise, weighed with their probabilities."""
    cells, values = ["x", "x", "x", "y"], ["a", "a", "b", "b"]
    # Both values are equally common: the prior decides nothing, and both attackers guess alike.
    reach = np.arange(-80, 81)
    law = (1 - math.exp(-epsilon)) / (1 + math.exp(-epsilon)) * np.exp(-epsilon * np.abs(reach))
    both = law[:, None] * law[None, :]

    def right(counts: tuple[int, int], truth: int) -> float:
        a, b = counts[0] + reach[:, None], counts[1] + reach[None, :]
        return float(both[(a >= b) if truth == 0 else (a < b)].sum())  # of equal ones the first is taken

    present = np.array([right((2, 1), 0)] * 2 + [right((2, 1), 1), right((0, 1), 1)])
    absent = np.array([right((1, 1), 0)] * 2 + [right((2, 0), 1), right((0, 0), 1)])
    assert all(p <= ceiling(epsilon, b) + 1e-12 for p, b in zip(present, absent, strict=True))
    assert present.mean() <= ceiling(epsilon, float(absent.mean()))

    rounds = 2000
    found = uniqueness.compare(
        {"cell": cells, "value": values},
        ["cell"],
        sensitive="value",
        epsilons=(epsilon,),
        rounds=rounds,
        bits=SeededBits(7),
    )
    private = _told(found, f"epsilon {epsilon:g}")
    error = 4 * math.sqrt(0.25 / rounds)  # rounds are independent, people of one round are not
    assert private.success == pytest.approx(present.mean(), abs=error)
    assert private.without == pytest.approx(absent.mean(), abs=error)
    assert private.bound == pytest.approx(ceiling(epsilon, max(private.without, 0.5)))


def test_named_people_are_looked_up_where_the_list_says() -> None:
    table = people(600, areas=4, years=3)
    moved = table | {"zip": ["nowhere"] * 600}
    known = linkage.compare(table, table, on=QUASI, sensitive="illness", truth="id", epsilons=(1,), rounds=1)
    lost = linkage.compare(table, moved, on=QUASI, sensitive="illness", truth="id", epsilons=(1,), rounds=1)
    assert known.raw.success > 0.85
    assert lost.raw.success == lost.raw.baseline  # in no cell: all that is left is the commonest value
    some = linkage.compare(
        table,
        {name: values[:50] for name, values in table.items()},
        on=QUASI,
        sensitive="illness",
        truth="id",
        epsilons=(1,),
        rounds=1,
    )
    assert some.raw.targets == 50


def test_a_family_of_k() -> None:
    found = k_anonymity.compare(
        people(800), quasi=QUASI, sensitive="illness", k=(3, 50), epsilons=(1,), rounds=2, bits=SeededBits(2)
    )
    assert [trial.defence for trial in found][:3] == ["no defence", "3-anonymous", "50-anonymous"]
    assert found.raw.success > found["3-anonymous"].success > found["50-anonymous"].success


@pytest.mark.parametrize(
    ("name", "given"),
    [("epsilon", {"epsilons": (0,)}), ("rounds", {"rounds": 0}), ("k", {"k": 1}), ("quasi", {"sensitive": "name"})],
)
def test_bad_input_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        uniqueness.compare(people(20), QUASI, **{"sensitive": "illness"} | given)
    assert refused.value.name == name


def test_nobody_to_look_up_is_refused() -> None:
    table = people(20)
    strangers = table | {"id": [-1 - place for place in range(20)]}
    with pytest.raises(InvalidParameter, match="targets"):
        linkage.compare(table, strangers, on=QUASI, sensitive="illness", truth="id")
