"""People and their events from one charge: linked by a made-up key, kept, replayed, refused with the reason."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import synthetic
from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.curator import Curator
from discreet.curator.observation import observe_curator
from discreet.curator.synthesis import linked_plan
from discreet.curator.synthesis.linked_tables import KeptTables, SyntheticTables
from discreet.engines import DuckDB, Memory
from discreet.errors import InsufficientBudget, InvalidParameter, QueryFailed, UnknownTable, UnsupportedQuery
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.presentation.ledger_view.query_text import asked_text
from discreet.privacy import Budget, Neighbours
from discreet.synthetic.generator import Generator
from discreet.synthetic.quality import quality_page
from tests.curator.spies import Spy
from tests.report.reader import Page

PEOPLE = {"who": "text", "sex": "text", "born": "date"}
VISITS = {"who": "text", "ward": "text", "cost": "int"}
QUICK: dict[str, Any] = {"epsilon": 2, "generator": "independent"}
GENERATORS = ("independent", "mst", "aim", "allpairs")

Rows = list[dict[str, Any]]


def tables(count: int = 300) -> tuple[Rows, Rows]:
    """Everybody has 0 to 3 visits, equal ones; the ward follows the sex. Some ids have white space around them."""
    people = [{"who": f"p{n}", "sex": "FM"[n % 2], "born": dt.date(1950 + n % 40, 1, 1)} for n in range(count)]
    visits = [
        {"who": f" p{n} " if visit else f"p{n}", "ward": "AB"[n % 2], "cost": n % 9}
        for n in range(count)
        for visit in range(n % 4)
    ]
    return people, [*visits, {"who": "nobody", "ward": "A", "cost": 1}, {"who": None, "ward": "B", "cost": 1}]


def curator(
    found: tuple[Any, Any] | None = None, *, engine: Any = None, ledger: str = ":memory:", **declared: Any
) -> Curator:
    made = Curator.for_tests(ledger, engine=engine or Memory(), bits=SeededBits(4))
    people, visits = tables() if found is None else found
    shared = {"unit": "who", "account": "patients"} | declared
    budget = shared.pop("budget", Budget(epsilon=20, delta=1e-6))
    bounds = {"born": (dt.date(1950, 1, 1), dt.date(1989, 12, 31))}
    made.protect(
        people,
        name="people",
        types=PEOPLE,
        keys={"sex": ["F", "M"]},
        bounds=bounds,
        budget=budget,
        **{"max_rows": 1, **shared},
    )
    keys, costs = {"ward": ["A", "B"]}, {"cost": (0, 20)}
    made.protect(visits, name="visits", types=VISITS, keys=keys, bounds=costs, max_rows=3, **shared)
    return made


def charges(made: Curator) -> int:
    return sum(entry.kind == "charge" for entry in made.history("patients"))


# --------------------------------------------------------------------------------------------------------- two tables


def check_linked(found: SyntheticTables) -> None:
    assert found.key == "who"
    assert found.people.column_names == ["who", "sex", "born"]
    assert found.events.column_names == ["who", "ward", "cost"]
    assert 200 < found.people.num_rows < 400
    keys = found.people["who"].to_pylist()
    numbers = Counter(found.events["who"].to_pylist())
    assert keys == list(range(1, len(keys) + 1))
    assert set(numbers) <= set(keys)
    assert max(numbers.values()) <= 3
    assert {type(day) for day in found.people["born"].to_pylist()} <= {dt.date, type(None)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("generator", GENERATORS)
def test_two_tables_are_made_for_one_charge_and_given_again_for_nothing(generator: str, tmp_path: Path) -> None:
    spy, ledger = Spy(), str(tmp_path / "book.db")
    how = QUICK | {"generator": generator, "within": "histogram"}
    with curator(engine=spy, ledger=ledger) as made:
        plan = made.plan_synthesize("people", "visits", **how)
        assert (spy.reads, charges(made), plan.free) == (0, 0, False)
        seen: list[int] = []
        spy.before = lambda: seen.append(charges(made))
        found = made.synthesize_tables("people", "visits", **how)
        assert seen == [1, 1]
        assert (plan.event, plan.cost, plan.notes) == (found.event, found.cost, found.notes)
        check_linked(found)
        assert "is synthetic" in " ".join(found.notes)
        assert "Not private" in str(found)
        entry = made.history("patients")[-2]
        assert asked_text(entry.content).startswith("synthetic tables by")
        made.verify()
    again = Spy()
    with curator(engine=again, ledger=ledger) as made:
        same = made.synthesize_tables("people", "visits", **how)
        assert (same.replayed, again.reads, charges(made)) == (True, 0, 1)
        assert same.people.equals(found.people)
        assert same.events.equals(found.events)
        assert made.plan_synthesize("people", "visits", **how).free
        more = made.synthesize_tables("people", "visits", **how, rows=500)
        assert (more.people.num_rows, more.replayed) == (500, True)
        first, second = more.sample(50, random_state=1)
        assert (first.num_rows, first.column_names[0], second.column_names[0]) == (50, "who", "who")
        assert first.equals(same.sample(50, random_state=1)[0])


@pytest.mark.ci
def test_a_page_on_both_tables_reads_nothing_and_is_the_same_when_they_are_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality_page, "MOST_CHARTS", 1)  # drawing takes long
    spy = Spy()
    with curator(engine=spy) as made:
        found = made.synthesize_tables("people", "visits", **QUICK)
        before = (spy.reads, charges(made))
        found.report(tmp_path / "both.html")
        assert (spy.reads, charges(made)) == before
        text = (tmp_path / "both.html").read_text(encoding="utf-8")
        assert made.synthesize_tables("people", "visits", **QUICK).to_html() == text
    read = Page(text)
    anchors = [tag["aria-labelledby"] for tag in read.named("section")]
    assert len(anchors) == len(set(anchors)) == 8
    assert {f"{table}-{part}" for table in ("people", "visits") for part in ("use", "columns", "pairs")} < set(anchors)
    assert read.fetched == []
    assert text.count("epsilon of all tables") == 2
    words = " ".join(read.text("li").split())
    assert "each person is synthetic" in words
    assert "events are generated one by one" in words
    assert "no two rows belong to the same person" not in words  # which is true of one table only
    with pytest.raises(InvalidParameter, match="can be written"):
        found.report(tmp_path / "no" / "where.html")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("generator", ["mst", "aim", "allpairs"])
def test_events_fit_whose_they_are(generator: str) -> None:
    made = curator(tables(1500))
    found = made.synthesize_tables("people", "visits", epsilon=10, generator=generator)
    sex = dict(zip(found.people["who"].to_pylist(), found.people["sex"].to_pylist(), strict=True))
    whose = zip(found.events["who"].to_pylist(), found.events["ward"].to_pylist(), strict=True)
    pairs = Counter((sex[who], ward) for who, ward in whose)
    assert pairs["F", "A"] + pairs["M", "B"] > 0.9 * sum(pairs.values())
    assert abs(found.events.num_rows / found.people.num_rows - 1.5) < 0.1


@pytest.mark.ci
def test_another_order_limit_or_domain_is_another_pair_of_tables() -> None:
    made = curator()
    first = made.synthesize_tables("people", "visits", **QUICK)
    for how in ({"rows_per_unit": 2}, {"domain": {"visits": {"ward": ["A"]}}}, {"epsilon": 1}, {"bins": 3}):
        assert not made.synthesize_tables("people", "visits", **(QUICK | how)).replayed
    assert not made.synthesize_tables("people", "SELECT ward FROM visits", **QUICK).replayed
    assert made.synthesize_tables("people", "visits", **QUICK).people.equals(first.people)
    ruled = made.synthesize_tables("people", "visits", **QUICK, forbidden={"people": [{"sex": ["F"]}]})
    assert "F" not in ruled.people["sex"].to_pylist()
    assert made.synthesize_tables("people", "visits", epsilon=1, generator="mst", key="k").key == "who"


def test_the_made_up_key_has_a_name_of_its_own() -> None:
    made = curator()
    named = "SELECT ward AS who, cost AS id FROM visits"
    assert made.synthesize_tables("people", named, **QUICK).key == "id_"


# ----------------------------------------------------------------------------------------------------------- refusals


def refused(call: Callable[[Curator], object], error: type[Exception], **declared: Any) -> Any:
    spy = Spy()
    made = curator(engine=spy, **declared)
    made.protect(
        tables()[0],
        name="others",
        unit="who",
        max_rows=1,
        types=PEOPLE,
        keys={"sex": ["F", "M"]},
        budget=Budget(epsilon=2, delta=1e-6),
        identity="others",
    )
    made.protect(
        [{"a": 1}], name="rows", types={"a": "int"}, bounds={"a": (0, 3)}, budget=Budget(epsilon=2, delta=1e-6)
    )
    made.public([{"sex": "F"}], name="sexes", types={"sex": "text"})
    before = spy.reads  # of the public table, when it was registered
    with pytest.raises(error) as told:
        call(made)
    assert (spy.reads, charges(made)) == (before, 0)
    return told.value


FOREIGN = synthetic.AIM(epsilon=1, delta=1e-9, workload=(("ward",),))
BORN = {"others": {"born": synthetic.Calendar("year", years=(1950, 1990))}}


@pytest.mark.parametrize(
    ("events", "how", "name"),
    [
        ("others", {"domain": BORN}, "events"),
        ("rows", {}, "events"),
        ("people", {}, "events"),
        ("visits", {"rows_per_unit": 0}, "rows_per_unit"),
        ("visits", {"rows_per_unit": 10**5}, "rows_per_unit"),
        ("visits", {"rows": 10**9}, "rows"),
        ("visits", {"rows": 0}, "rows"),
        ("visits", {"domain": {"nobody": {}}}, "domain"),
        ("visits", {"domain": {"ward": ["A"]}}, "domain"),
        ("visits", {"forbidden": [{"ward": ["A"]}]}, "forbidden"),
        ("visits", {"generator": FOREIGN, "epsilon": None}, "workload"),
        (3, {}, "events"),
        (["visits", "others"], {}, "events"),
    ],
    ids=str,
)
def test_what_is_not_supported_is_refused_for_nothing(events: Any, how: dict[str, Any], name: str) -> None:
    error = refused(lambda made: made.synthesize_tables("people", events, **(QUICK | how)), InvalidParameter)
    assert error.name == name


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ("sexes", UnsupportedQuery),
        ("absent", UnknownTable),
        ("SELECT v.ward FROM visits v JOIN people p ON v.who = p.who", UnsupportedQuery),
        ("SELECT who, ward FROM visits", UnsupportedQuery),
    ],
)
def test_other_rows_are_refused_for_nothing(events: str, error: type[Exception]) -> None:
    refused(lambda made: made.synthesize_tables("people", events, **QUICK), error)


def test_a_table_without_whose_rows_they_are_is_refused_as_people() -> None:
    error = refused(lambda made: made.synthesize_tables("rows", "visits", **QUICK), InvalidParameter)
    assert error.name == "people"


def test_a_budget_that_is_too_small_reads_nothing() -> None:
    refused(lambda made: made.synthesize_tables("people", "visits", epsilon=100), InsufficientBudget)
    refused(
        lambda made: made.synthesize_tables("people", "visits", **QUICK), InvalidParameter, budget=Budget(epsilon=9)
    )


def test_a_failure_stays_charged_and_says_nothing() -> None:
    class Failing(Spy):
        def read(self, reading: Reading) -> ExactGroups:
            groups = super().read(reading)
            if self.reads == 2:
                raise ZeroDivisionError
            return groups

    made = curator(engine=Failing())
    with pytest.raises(QueryFailed) as told:
        made.synthesize_tables("people", "visits", **QUICK)
    assert told.value.__cause__ is None
    assert charges(made) == 1


def test_no_rows_are_no_error() -> None:
    made = curator()
    for people, visits in (("people WHERE sex = 'X'", "visits"), ("people", "visits WHERE cost > 1000")):
        first = f"SELECT sex FROM {people}"
        found = made.synthesize_tables(first, f"SELECT ward FROM {visits}", **QUICK)
        assert found.people.num_rows >= 1


def test_texts_that_are_none_are_refused() -> None:
    for text in ("{}", "[]", "no", '{"format": "discreet synthetic tables 1"}'):
        with pytest.raises(InvalidParameter):
            KeptTables.from_json(text)


# --------------------------------------------------------------------------------------------------------- neighbours


def handed(
    found: tuple[Rows, Rows], how: dict[str, Any], relation: Neighbours, frozen: Any = None
) -> MechanismRecorder:
    bits = SeededBits(7)
    recorder = MechanismRecorder(bits, frozen=frozen, seed=1)
    with curator(found, neighbours=relation) as made:
        twin = observe_curator(made, engine=made._engine, releaser=Releaser(bits), salt="salt")
        with watch_mechanisms(recorder):
            twin.synthesize_tables("people", "visits", **how)
    return recorder


def moved(one: tuple[Rows, Rows], other: tuple[Rows, Rows], how: dict[str, Any], relation: Neighbours) -> float:
    """How far an input moved at most, as a share of what is hidden."""
    first = handed(one, how, relation)
    second = handed(other, how, relation, first.made)
    assert not second.strayed
    assert len(first.made) == len(second.made)
    shares = []
    for left, right in zip(first.made, second.made, strict=True):
        apart = np.abs(np.asarray(left.inputs[0], dtype=float) - np.asarray(right.inputs[0], dtype=float))
        size = apart.max() if type(left.mechanism).__name__ == "Exponential" else np.sqrt((apart**2).sum())
        shares.append(size / float(left.mechanism.sensitivity))
    return float(max(shares))


def neighbour(found: tuple[Rows, Rows], who: str, relation: Neighbours) -> tuple[Rows, Rows]:
    people, visits = ([row for row in rows if (row["who"] or "").strip() != who] for rows in found)
    if relation is Neighbours.REPLACE:
        people += [{"who": who, "sex": sex, "born": dt.date(1989, 5, 5)} for sex in "FM"]
        visits += [{"who": f"{who} ", "ward": "AB"[n % 2], "cost": 19} for n in range(9)]
    return people, visits


@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("generator", GENERATORS)
def test_one_person_moves_nothing_further_than_noise_hides(generator: str, relation: Neighbours) -> None:
    how = {"epsilon": 8, "generator": generator, "bins": 3, "within": "histogram"}
    found = tables(24)
    assert 0 < moved(found, neighbour(found, "p7", relation), how, relation) <= 1


def test_noise_that_forgets_the_limit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that counts three events of a person and adds the noise of one."""
    found, how = tables(24), {"epsilon": 8, "generator": "independent", "bins": 3}
    other = neighbour(found, "p7", Neighbours.ADD_REMOVE)
    assert moved(found, other, how, Neighbours.ADD_REMOVE) <= 1
    honest = Generator.fit_known

    def forgetful(self: Generator, *given: Any, **options: Any) -> Any:
        return honest(self, *given, **(options | {"rows_per_unit": 1}))

    monkeypatch.setattr(Generator, "fit_known", forgetful)
    assert moved(found, other, how, Neighbours.ADD_REMOVE) > 1


def test_the_limit_is_kept_however_many_rows_an_engine_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that bounds nothing changes what is kept, and no sensitivity."""
    found, how = tables(24), {"epsilon": 8, "generator": "independent", "bins": 3, "rows_per_unit": 1}
    other = neighbour(found, "p7", Neighbours.ADD_REMOVE)
    honest = linked_plan._reading
    monkeypatch.setattr(linked_plan, "_reading", lambda plan, _: honest(plan, 1000))
    assert 0 < moved(found, other, how, Neighbours.ADD_REMOVE) <= 1


def test_engines_agree() -> None:
    pandas = pytest.importorskip("pandas")
    made = []
    for engine in (Memory(), DuckDB()):
        found: Any = tables(100)
        if isinstance(engine, DuckDB):
            found = tuple(pandas.DataFrame(rows) for rows in found)
        with curator(found, engine=engine) as each:
            twin = observe_curator(each, engine=engine, releaser=Releaser(SeededBits(2)), salt="salt")
            made.append(twin.synthesize_tables("people", "visits", **QUICK, rows_per_unit=2))
    assert made[0].people.equals(made[1].people)
    assert made[0].events.equals(made[1].events)


# ----------------------------------------------------------------------------------------------- rows of one table


def test_equal_rows_of_a_person_count() -> None:
    """450 visits of 300 people, of which all of one person are equal: 225 people have some."""
    made = curator()
    one = made.synthesize("visits", epsilon=5, generator="independent")
    all_of_them = made.synthesize("visits", epsilon=5, generator="independent", rows_per_unit=3)
    assert abs(one.model.rows - 226) < 30  # and one of somebody else
    assert abs(all_of_them.model.rows - 451) < 60
    two = made.synthesize("visits", epsilon=5, generator="independent", rows_per_unit=2)
    assert abs(two.model.rows - 376) < 45
    assert made.synthesize("SELECT ward FROM visits WHERE cost > 99", **QUICK, rows_per_unit=2).model.rows >= 1
