"""What is told of a model's errors is true of its errors, follows from what was released, and is on a page."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import ApproxDP
from discreet.synthetic import AIM, MST, AllPairs, Bins, Calendar, Domain, Independent, Keys, Model, UnknownKeys
from discreet.synthetic.coded_rows import CodedRows
from discreet.synthetic.generator import Generator
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal
from discreet.synthetic.measurement_log import MeasurementLog
from discreet.synthetic.quality import pair_errors, quality_page
from discreet.synthetic.quality.column_shares import MISSING, MOST_SHOWN, ColumnShares, column_shares
from tests.report.reader import Page

DOMAIN = Domain({"a": ["x", "y", "z"], "b": range(0, 8, 2), "c": [0, 1]})
EVIL = "<script>alert(1)</script>"


def frame(count: int, seed: int = 1) -> dict[str, list[Any]]:
    """Columns that depend on each other; every value is frequent, and none is missing."""
    u = uniforms((count, 3), bits=SeededBits(seed))
    first = np.floor(3 * u[:, 0]).astype(int)
    second = np.floor(2 * u[:, 1] + first)
    third = (u[:, 2] < 0.2 + 0.3 * first).astype(int)
    return {"a": ["xyz"[value] for value in first], "b": (2 * second).tolist(), "c": third.tolist()}


def exact(model: Model, rows: dict[str, list[Any]], pair: tuple[str, str]) -> Any:
    """The exact counts of a pair, over the values that the model has."""
    coded = CodedRows(model.domain.sizes, model.domain.encode(rows))
    places = {name: merge.places for name, merge in model.merges.items()}
    return coded.recode_columns(places, model.law.tree.sizes).counts(pair)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("generator", [MST, AIM, AllPairs])
def test_intervals_hold_the_true_error(generator: type[Generator]) -> None:
    """Each with a chance of 95 %: that a fifth of 20 or more miss has a chance below 0.4 %, and seeds are fixed."""
    held, seen, alone = 0, 0, 0
    for seed in range(10):
        rows = frame(400, seed)
        model = generator(epsilon=1, delta=1e-6, random_state=seed).fit(rows, domain=DOMAIN, rows=400)
        for error in pair_errors.pair_errors(model):
            counts = exact(model, rows, error.columns)
            true = float(np.abs(counts - 400 * model.law.marginal(error.columns)).sum()) / 800
            held += error.low <= true <= error.high
            alone += abs(true - error.distance) < 0.03 * (error.high - error.distance)
            seen += 1
    assert seen >= 20
    assert seen - held <= 0.2 * seen
    assert alone < 0.6 * seen  # intervals that forget nearly all noise would not do


def test_the_formulas_of_one_pair() -> None:
    """Four cells with noise of deviation 2: E|z|_1 = 8 sqrt(2 / pi), and 2 sqrt(8 ln 20) above it is rare."""
    counts, estimate = np.array([[30.0, 10.0], [20.0, 40.0]]), np.array([[25.0, 15.0], [25.0, 35.0]])
    measured = pair_errors.MeasuredPair(counts=counts, deviations=np.full((2, 2), 2.0), norm=2.0)
    found = measured.error(("a", "b"), estimate, 100.0)
    noise = 8 * math.sqrt(2 / math.pi)
    most = noise + 2 * math.sqrt(8 * math.log(20))
    assert found.distance == 20 / 200
    assert found.noise == pytest.approx(noise / 200)
    assert found.low == pytest.approx((20 - most) / 200)
    assert found.high == pytest.approx((20 + most) / 200)
    assert found.beyond_noise == pytest.approx((20 - noise) / 200)
    assert measured.error(("a", "b"), counts, 100.0).low == 0


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("generator", [MST, AIM, AllPairs])
def test_without_noise_what_was_measured_is_what_is_true(generator: type[Generator]) -> None:
    rows = frame(3000)
    model = generator(epsilon=10**7, delta=1e-6, random_state=1).fit(rows, domain=DOMAIN, rows=3000)
    measured = pair_errors.measured_pairs(model)
    assert measured
    for pair, found in measured.items():
        assert np.allclose(found.counts, exact(model, rows, pair), atol=1)
    assert all(error.high < 0.01 for error in pair_errors.pair_errors(model))


@pytest.mark.ci
def test_noise_of_a_completed_residual_is_what_is_said() -> None:
    """The mean of |z|_1 of 400 draws: 20 cells give it a deviation of a fifth, so that 5 errors of the mean are 5 %."""
    rows, pair, share = frame(2000), ("a", "b"), Fraction(1, 3)
    base = Independent(epsilon=1, delta=1e-6, random_state=1).fit(rows, domain=DOMAIN, rows=2000)
    coded = CodedRows(DOMAIN.sizes, DOMAIN.encode(rows))
    sizes = []
    for seed in range(400):
        log = MeasurementLog(rho=1, bits=SeededBits(seed))
        columns = [log.marginal(coded, (name,), rho=share) for name in pair]
        model = replace(base, measurements=(*columns, *log.residuals(coded, {pair: 1}, rho=share)))
        found = pair_errors.measured_pairs(model)[pair]
        sizes.append(float(np.abs(found.counts - coded.counts(pair)).sum()))
    said = math.sqrt(2 / math.pi) * float(found.deviations.sum())
    assert np.mean(sizes) == pytest.approx(said, rel=0.06)
    assert np.mean(sizes) != pytest.approx(1.3 * said, rel=0.06)
    bound = said + found.norm * math.sqrt(2 * found.counts.size * math.log(20))
    assert np.mean(np.array(sizes) > bound) <= 0.05


def test_a_larger_marginal_tells_of_its_pairs_and_several_are_put_together() -> None:
    model = Independent(epsilon=1, delta=1e-6, random_state=1).fit(frame(500), domain=DOMAIN)
    shape = tuple(DOMAIN.sizes.values())
    cube = NoisyMarginal(("c", "a", "b"), np.ones((shape[2], *shape[:2])), 3.0)
    plain = NoisyMarginal(("b", "a"), np.full(shape[1::-1], 5.0), 2.0)
    found = pair_errors.measured_pairs(replace(model, measurements=(cube, plain)))
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found["a", "c"].norm == pytest.approx(3 * math.sqrt(shape[1]))
    assert np.all(found["a", "c"].counts == shape[1])
    weights = np.array([1 / (9 * shape[2]), 1 / 4])  # inverse variances
    assert np.allclose(found["a", "b"].counts, weights @ [shape[2], 5.0] / weights.sum())
    assert found["a", "b"].norm == pytest.approx(weights.sum() ** -0.5)


@pytest.mark.ci
def test_what_was_not_measured_is_said_to_be_so() -> None:
    rows = frame(2000)
    model = Independent(epsilon=1, delta=1e-6, random_state=1).fit(rows, domain=DOMAIN)
    every = list(combinations("abc", 2))
    assert (pair_errors.pair_errors(model), pair_errors.unmeasured_pairs(model)) == ([], every)
    assert pair_errors.implied_pairs(model, every) == []
    tree = MST(epsilon=10, delta=1e-6, random_state=1).fit(rows, domain=DOMAIN)
    (left,) = pair_errors.unmeasured_pairs(tree)
    assert pair_errors.implied_pairs(tree, [left]) == [left]
    text = " ".join(Page(quality_page.quality_page(tree)).text("p").split())
    assert "1 pair of columns were not measured. The model has them only as far as the measurements imply" in text
    assert f"Related in the model, through other columns (1): {left[0]} with {left[1]}." in text


# ----------------------------------------------------------------------------------------------------------- columns


def shares(domain: Any, values: list[Any], **options: Any) -> tuple[ColumnShares, Model]:
    model = MST(epsilon=5, delta=1e-6, random_state=1, **options).fit({"v": values}, domain={"v": domain})
    return column_shares(model)[0], model


def test_a_merged_column_shows_what_was_released_for_each_value() -> None:
    found, model = shares(Keys(list("abcdef")), ["a"] * 500 + ["b"] * 400)
    assert model.merges["v"].size < 7
    (raw,) = model.unmerged
    assert [share.measured for share in found.shares] == pytest.approx((raw.values / model.rows).tolist())
    assert [share.label for share in found.shares] == [*"abcdef", MISSING]
    assert sum(share.share for share in found.shares) == pytest.approx(1)
    reach = 1.959964 * raw.sigma / model.rows
    assert found.shares[0].high - (found.shares[0].measured or 0) == pytest.approx(reach)
    assert all(share.low >= 0 for share in found.shares)


@pytest.mark.parametrize(
    ("domain", "values", "labels"),
    [
        (Bins(range(0, 100, 1)), list(range(100)), ["0 to 4", "5 to 9"]),
        (Bins([0, 0.5, 1]), [0.2, 0.7] * 50, ["0 up to 0.5", "0.5 up to 1"]),
        (Calendar("year_month", years=(2020, 2021)), ["2020-03-01"] * 50, ["2020-01 to 2020-02", "2020-03 to 2020-04"]),
        (Calendar("quarter", years=(2020, 2020)), ["2020-03-01"] * 50, ["2020 Q1", "2020 Q2"]),
        (Calendar("weekday"), ["2020-03-01"] * 50, ["1", "2"]),
        (Keys(range(60)), [7] * 200 + [3] * 100, ["7", "3"]),
    ],
    ids=str,
)
def test_lines_of_a_column(domain: Any, values: list[Any], labels: list[str]) -> None:
    found, _ = shares(domain, values, rare=0)
    assert [share.label for share in found.shares][:2] == labels
    assert found.shares[-1].label == MISSING
    assert len(found.shares) <= MOST_SHOWN
    assert sum(share.share for share in found.shares) == pytest.approx(1)


# -------------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize("generator", [Independent, MST, AIM, AllPairs])
def test_a_model_keeps_what_its_page_needs(generator: type[Generator]) -> None:
    model = generator(epsilon="1/3", delta=1e-6, random_state=1).fit(frame(300), domain=DOMAIN)
    again = Model.from_json(model.to_json())
    assert again.to_json() == model.to_json()
    assert again.promise == ApproxDP("1/3", 1e-6)
    assert column_shares(again) == column_shares(model)
    assert pair_errors.pair_errors(again) == pair_errors.pair_errors(model)


def test_texts_of_the_first_version_are_read_and_those_of_later_ones_refused() -> None:
    model = MST(epsilon=1, delta=1e-6, random_state=1).fit(frame(300), domain=DOMAIN)
    text = json.loads(model.to_json())
    old = {name: part for name, part in text.items() if name not in ("promise", "unmerged")}
    found = Model.from_json(json.dumps(old | {"format": "discreet synthetic model 1"}))
    assert (found.promise, found.unmerged, found.rows) == (None, (), model.rows)
    assert len(column_shares(found)) == 3
    for number in (2, 3):  # without what the second version has, and of a version that nobody knows
        with pytest.raises(InvalidParameter):
            Model.from_json(json.dumps(old | {"format": f"discreet synthetic model {number}"}))


# -------------------------------------------------------------------------------------------------------------- page


@pytest.fixture(scope="module")
def evil() -> Model:
    return AllPairs(epsilon=2, delta=1e-6, random_state=1).fit(
        {EVIL: ["<b>", "\x1b[31m"] * 100, "n": list(range(200))},
        domain={EVIL: ["<b>", "\x1b[31m"], "n": range(0, 250, 50)},
    )


@pytest.mark.ci
def test_a_page_stands_alone_and_nothing_becomes_markup(evil: Model) -> None:
    text = quality_page.quality_page(evil, name=EVIL, rows=10, notes=(EVIL,))
    read = Page(text)
    assert "<script" not in text
    assert "\x1b" not in text
    assert all(link.startswith("#") for link in read.fetched)
    assert "alert(1)" in read.text("h1")


@pytest.mark.ci
def test_a_page_says_what_the_table_is_good_for(evil: Model) -> None:
    text = quality_page.quality_page(evil, name="t", rows=10, notes=("A note.",))
    read = Page(text)
    said = " ".join(read.text("li").split())
    for words in ("Counts and shares of single columns", "Combinations of many columns", "Outliers", "Intervals"):
        assert words in said
    assert "A note." in said
    assert "spread evenly within its bin" in read.text("td")
    assert "gives no privacy" in read.text("p")
    assert "gives no privacy" not in quality_page.quality_page(replace(evil, private=True))
    assert "2 columns were measured at a time" in said.replace("at most ", "")


@pytest.mark.ci
def test_a_page_says_how_places_within_bins_and_keys_were_found() -> None:
    rows = {"age": list(range(200)), "fee": list(range(200)), "city": ["Bern", "Rome"] * 100}
    age, fee = Bins([0, 100, 200], within="histogram"), Bins([0, 100, 200])
    generator = Independent(epsilon=5, delta=1e-3, random_state=1)
    model = generator.fit(rows, domain={"age": age, "fee": fee, "city": UnknownKeys(most=5)})
    assert [share.label for share in column_shares(model)[2].shares] == ["Bern", "Rome", "other", MISSING]
    read = Page(quality_page.quality_page(model))
    assert "by a private histogram" in read.text("td")
    assert "values are spread evenly there, in fee." in read.text("li")


@pytest.mark.ci
def test_one_column_has_a_page_as_well() -> None:
    model = Independent(epsilon=1, delta=1e-6, random_state=1).fit({"a": [0, 1] * 50}, domain={"a": [0, 1]})
    assert "There is only one column." in model.to_html()
    assert model.to_html() == Model.from_json(model.to_json()).to_html()


def test_many_columns_have_tables_instead_of_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Independent(epsilon=1, delta=1e-6, random_state=1).fit(frame(300), domain=DOMAIN)
    monkeypatch.setattr(quality_page, "MOST_CHARTS", 1)
    read = Page(quality_page.quality_page(model))
    assert len(read.named("figure")) == 1
    assert len(read.named("table")) == 3
