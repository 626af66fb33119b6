"""Events: values, domains, JSON that never changes its meaning."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.privacy import events
from discreet.privacy.events import Event, from_json, to_json
from discreet.privacy.events.event_kinds import DEEPEST
from tests.cases import every

FROZEN = Path(__file__).with_name("events_v1.json")

positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9) | st.floats(1e-299, 1e299)
delta = st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(99, 100))
whole = st.integers(1, 10**12)
leaves: st.SearchStrategy[Event] = st.one_of(
    st.builds(events.Laplace, positive),
    st.builds(events.Gaussian, positive),
    st.builds(events.DiscreteLaplace, positive, whole),
    st.builds(events.DiscreteGaussian, positive, whole),
    st.builds(events.DiscreteGaussian, positive, positive, st.integers(2, 1000)),
    st.builds(events.Pure, positive),
    st.builds(events.Approx, st.just(0) | positive, delta),
    st.builds(events.Concentrated, positive, st.just(0) | delta),
    st.builds(events.BoundedRange, positive),
    st.builds(events.RandomizedResponse, positive, st.integers(2, 100)),
)


def _around(inner: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    return st.one_of(
        st.builds(events.PoissonSampled, st.fractions(Fraction(1, 10**6), 1), inner),
        st.builds(events.Repeated, inner, st.integers(0, 10**6)),
        st.builds(events.Composed, st.lists(inner, max_size=3)),
    )


any_event = st.recursive(leaves, _around, max_leaves=5)


def nest(levels: int) -> Event:
    event: Event = events.Pure(1)
    for _ in range(levels - 1):
        event = events.Repeated(event, 1)
    return event


# Values


def test_numbers_are_kept_exactly() -> None:
    assert events.Pure(0.1).epsilon == Fraction(1, 10)  # a budget's float means its shortest decimal
    assert events.Gaussian(0.1).noise_multiplier == Fraction(0.1)  # a scale's float is the binary number drawn with
    assert events.DiscreteLaplace(0.1, 1).scale == events.DiscreteGaussian(0.1, 1).sigma == Fraction(0.1)
    assert events.PoissonSampled(0.01, events.Pure(1)).probability == Fraction(1, 100)
    assert events.DiscreteGaussian(5, "3/2", dimension=2).sensitivity == Fraction(3, 2)


def test_defaults() -> None:
    assert events.DiscreteGaussian(1, 1).dimension == 1
    assert events.Concentrated(1).delta == 0
    assert events.RandomizedResponse(1).options == 2


@given(any_event)
def test_events_are_values(event: Event) -> None:
    assert pickle.loads(pickle.dumps(event)) == event == copy.deepcopy(event)
    assert len({event, copy.copy(event)}) == 1
    assert eval(repr(event), {**vars(events), "Fraction": Fraction}) == event
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, dataclasses.fields(event)[0].name, 1)  # type: ignore[arg-type]
    assert not hasattr(event, "__dict__")


def test_equal_numbers_in_different_events_are_different() -> None:
    assert len({events.Pure(1), events.BoundedRange(1), events.Laplace(1), events.Gaussian(1)}) == 4


def test_composition_takes_any_iterable() -> None:
    parts = [events.Pure(1), events.Gaussian(1)]
    assert events.Composed(iter(parts)) == events.Composed(tuple(parts)) == events.Composed(parts)
    assert events.Composed([]).events == ()


# Domains


@every(
    ("build", "name"),
    [
        (lambda: events.DiscreteLaplace(1, 1.5), "sensitivity"),  # type: ignore[arg-type]
        (lambda: events.DiscreteLaplace(1, Fraction(1)), "sensitivity"),  # type: ignore[arg-type]
        (lambda: events.DiscreteGaussian(1, 1.5), "sensitivity"),
        (lambda: events.DiscreteGaussian(1, "1/2", 1), "sensitivity"),
        (lambda: events.RandomizedResponse(1, 1), "options"),
        (lambda: events.PoissonSampled(1.1, events.Pure(1)), "probability"),
        (lambda: events.PoissonSampled(0.1, 0.1), "event"),  # type: ignore[arg-type]
        (lambda: events.Repeated(events.Pure(1), -1), "count"),
        (lambda: events.Repeated(events.Pure(1), 10**400), "count"),
        (lambda: events.Repeated(events.Pure(1), True), "count"),
        (lambda: events.Repeated(events.Pure, 1), "event"),  # type: ignore[arg-type]
        (lambda: events.Composed(events.Pure(1)), "events"),  # type: ignore[arg-type]
        (lambda: events.Composed("pure"), "event"),  # type: ignore[arg-type]
        (lambda: events.Composed([events.Pure(1), None]), "event"),  # type: ignore[list-item]
    ],
)
def test_domains(build: Callable[[], Event], name: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        build()
    assert refusal.value.name == name


def test_an_endless_composition_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.privacy.events.event_kinds.MOST_EVENTS", 10)
    assert len(events.Composed(events.Pure(1) for _ in range(10)).events) == 10
    with pytest.raises(InvalidParameter, match="Use Repeated") as refusal:
        events.Composed(events.Pure(1) for _ in iter(int, 1))
    assert refusal.value.name == "events"


def test_certain_sampling_and_no_repetition_are_allowed() -> None:
    assert events.PoissonSampled(1, events.Pure(1)).probability == 1
    assert events.Repeated(events.Pure(1), 0).count == 0


def test_depth_is_capped() -> None:
    deepest = nest(DEEPEST)
    assert deepest.depth == DEEPEST
    assert from_json(to_json(deepest)) == deepest
    for build in (
        lambda: events.Repeated(deepest, 1),
        lambda: events.Composed([events.Pure(1), deepest]),
        lambda: events.PoissonSampled(0.5, deepest),
    ):
        with pytest.raises(InvalidParameter, match="below 32 levels"):
            build()


# JSON


@given(any_event)
def test_round_trip_is_exact_and_canonical(event: Event) -> None:
    text = to_json(event)
    assert from_json(text) == event
    assert to_json(from_json(text)) == text
    assert json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) == text


def test_round_trip_of_the_longest_numbers() -> None:
    for event in (events.Gaussian(1e-299), events.Laplace(1e299), events.Pure(Fraction(1 << 8191, (1 << 8191) - 1))):
        assert from_json(to_json(event)) == event


def test_texts_of_version_1_replay_for_ever() -> None:
    """Never edit the file: add lines when a kind is added. Each line holds a canonical text and what it must mean."""
    entries = json.loads(FROZEN.read_text())
    assert {json.loads(entry["text"])["kind"] for entry in entries} == set(events.KINDS)
    for entry in entries:
        event = from_json(entry["text"])
        assert repr(event) == entry["meaning"]
        assert to_json(event) == entry["text"]


def test_every_event_has_a_name() -> None:
    exported = {getattr(events, name) for name in events.__all__ if isinstance(getattr(events, name), type)}
    assert exported - {Event} == set(events.KINDS.values())


GOOD = '{"epsilon":"1/1","kind":"pure","version":1}'


@every(
    "text",
    [
        "",
        "null",
        "[]",
        "1",
        '"pure"',
        "NaN",
        "{",
        GOOD + "x",
        GOOD.replace('"version":1', '"version":2'),
        GOOD.replace('"version":1', '"version":"1"'),
        GOOD.replace('"version":1', '"version":true'),
        GOOD.replace('"version":1', '"version":1.0'),
        GOOD.replace(',"version":1', ""),
        GOOD.replace("pure", "purest"),
        GOOD.replace('"pure"', "null"),
        GOOD.replace('"pure"', '["pure"]'),
        GOOD.replace('"kind":"pure",', ""),
        GOOD.replace('"epsilon":"1/1",', ""),
        GOOD.replace('"epsilon"', '"Epsilon"'),
        GOOD.replace("{", '{"delta":"1/2",'),
        GOOD.replace("{", '{"epsilon":"2/1",'),
        GOOD.replace('"1/1"', "1"),
        GOOD.replace('"1/1"', "0.5"),
        GOOD.replace('"1/1"', "NaN"),
        GOOD.replace('"1/1"', "Infinity"),
        GOOD.replace('"1/1"', "1e999"),
        GOOD.replace('"1/1"', "null"),
        GOOD.replace('"1/1"', "true"),
        GOOD.replace("1/1", "0.5"),
        GOOD.replace("1/1", "1/0"),
        GOOD.replace("1/1", "0/1"),
        GOOD.replace("1/1", "-1/1"),
        GOOD.replace("1/1", "1/-1"),
        GOOD.replace("1/1", " 1/1"),
        GOOD.replace("1/1", "1/1\\n"),
        GOOD.replace("1/1", "\u0661/1"),
        GOOD.replace("1/1", "1" * 2400 + "/1"),
        GOOD.replace("1/1", "1" * 100_000 + "/1"),
        GOOD.replace('"1/1"', "1" * 100_000),
        GOOD.replace('"1/1"', "[" * 100_000),
        "[" * 100_000 + "]" * 100_000,
        '{"count":1.0,"event":{"epsilon":"1/1","kind":"pure"},"kind":"repeated","version":1}',
        '{"count":true,"event":{"epsilon":"1/1","kind":"pure"},"kind":"repeated","version":1}',
        '{"count":-1,"event":{"epsilon":"1/1","kind":"pure"},"kind":"repeated","version":1}',
        '{"count":1,"event":{"epsilon":"1/1","kind":"pure","version":1},"kind":"repeated","version":1}',
        '{"count":1,"event":"pure","kind":"repeated","version":1}',
        '{"events":{},"kind":"composed","version":1}',
        '{"events":[1],"kind":"composed","version":1}',
        '{"events":[[]],"kind":"composed","version":1}',
        '{"events":' + '[{"kind":"composed","events":' * 33 + "[]" + "}]" * 33 + ',"kind":"composed","version":1}',
        '{"events":' + '[{"kind":"composed","events":' * 300 + "[]" + "}]" * 300 + ',"kind":"composed","version":1}',
        None,
        b"{}",
        7,
    ],
)
def test_what_is_not_understood_is_refused(text: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        from_json(text)
    assert refusal.value.name in {"text", "epsilon", "count"}
    assert len(str(refusal.value)) < 600


def test_texts_of_absurd_length_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.privacy.events.text.LONGEST", 40)
    for call in (lambda: from_json(GOOD), lambda: to_json(events.Pure(1))):
        with pytest.raises(InvalidParameter, match="40 characters"):
            call()


def test_only_known_events_are_written() -> None:
    class Stranger(events.Pure):
        __slots__ = ()

    for wrong in (Stranger(1), None, "pure", Event()):
        with pytest.raises(InvalidParameter) as refusal:
            to_json(wrong)  # type: ignore[arg-type]
        assert refusal.value.name == "event"


@given(st.text())
def test_any_text_is_an_event_or_a_refusal(text: str) -> None:
    _read_or_refuse(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["1/2", "3/1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(any_event, st.data())
def test_any_change_of_a_field_is_an_event_or_a_refusal(event: Event, data: st.DataObject) -> None:
    fields = json.loads(to_json(event))
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = data.draw(json_values)
    _read_or_refuse(json.dumps(fields))


@given(any_event, st.data())
def test_any_cut_text_is_refused(event: Event, data: st.DataObject) -> None:
    text = to_json(event)
    with pytest.raises(InvalidParameter):
        from_json(text[: data.draw(st.integers(0, len(text) - 1))])


def _read_or_refuse(text: str) -> None:
    try:
        event = from_json(text)
    except InvalidParameter:
        return
    assert from_json(to_json(event)) == event
