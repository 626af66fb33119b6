"""Whether two neighbours could be told apart by anything but noise, and whether the noise is what was paid for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from discreet.accounting.basic import compose as basic
from discreet.accounting.terms import terms
from discreet.accounting.zcdp import zcdp_epsilon
from discreet.curator import Answer, Curator
from discreet.curator.measure import Measure
from discreet.exact import float_above, float_below
from discreet.mechanisms import PartitionSelection
from discreet.privacy import PureDP, events
from tests.curator.fuzz import Question
from tests.redteam.ranks import Divided, Drawn
from tests.redteam.recorder import Noise, Seen, Voted, Watched, ask, moved

LAWS = ("laplace", "gaussian")
ROUNDING = 1 + 1e-9  # the conversion of rho is rounded up, and the way back rounded down


def allowance(event: events.Event) -> Fraction:
    """What an event allows: epsilon for Laplace noise and drawn points, rho for Gaussian noise and points like it."""
    if isinstance(event, events.DiscreteLaplace):
        return event.sensitivity / event.scale
    if isinstance(event, events.DiscreteGaussian):
        return event.sensitivity**2 / (2 * event.sigma**2)
    if isinstance(event, events.Concentrated):
        return event.rho
    if isinstance(event, events.BoundedRange | events.Repeated):
        return Fraction(basic(terms(event)).epsilon)
    assert isinstance(event, events.Pure)
    return event.epsilon


class Pair:
    """Two curators of neighbouring tables, with the same salt."""

    def __init__(self, one: tuple[Curator, Watched], other: tuple[Curator, Watched]) -> None:
        self.one, self.other = one, other

    def judge(self, question: Question) -> Seen:
        """Asks both, and compares.

        Raises:
            AssertionError: if anything differs that no noise covers, or noise covers less than was charged.
        """
        (_, engine), (_, beside) = self.one, self.other
        first = ask(*self.one, question, beside=beside)
        second = ask(*self.other, question, frozen=first.noises, beside=engine)
        assert (first.status, first.error, first.spent) == (second.status, second.error, second.spent)
        replayed = first.answer is not None and first.answer.replayed
        assert first.reads == second.reads == (0 if replayed else expected_reads(first))
        if first.answer is not None and second.answer is not None:
            same_answers(first.answer, second.answer)
            if not replayed:
                self._same_inputs(question, first, second)
        return first

    def _same_inputs(self, question: Question, first: Seen, second: Seen) -> None:
        assert len(first.noises) == len(second.noises)
        for one, other in zip(first.noises, second.noises, strict=True):
            assert one.release == other.release
            assert not isinstance(one.release, Measure) or min(one.release.scales) > 0
            assert question.private or one.keys == other.keys
            assert moved(one, other) <= self._allowed(one)
        assert first.answer is not None
        within_what_was_asked(question, first.noises, first.answer)

    def _allowed(self, noise: Noise) -> Fraction:
        if isinstance(noise.release, PartitionSelection):
            return Fraction(noise.release.max_groups)
        return allowance(noise.release.event)


def expected_reads(seen: Seen) -> int:
    """One for what is added up, one for each list of a mode, and one or two, by its grid, for each of a quantile.

    And one for each column whose bounds are chosen: whatever was read met noise before the next read.
    """
    if seen.status != "answered":
        return int(seen.status == "failed")
    drawn = [noise.release for noise in seen.noises if isinstance(noise.release, Drawn | Divided)]
    looks = {release.read: max(bool(other.shift) for other in drawn if other.read == release.read) for release in drawn}
    polls = {noise.release.read for noise in seen.noises if isinstance(noise.release, Voted)}
    added = {noise.reads for noise in seen.noises if not isinstance(noise.release, Drawn | Divided | Voted)}
    return len(added) + len(looks) + sum(looks.values()) + len(polls)


def same_answers(one: Answer, other: Answer) -> None:
    """Equal in everything that an analyst sees, given that the same noise came out."""
    assert repr(one.records) == repr(other.records)  # repr: NaN is never equal
    assert one.columns == other.columns
    assert one.notes == other.notes
    assert (one.cost, one.remaining, one.event) == (other.cost, other.remaining, other.event)
    assert (one.confidence, one.private, one.replayed) == (other.confidence, other.private, other.replayed)


def within_what_was_asked(question: Question, noises: list[Noise], answer: Answer) -> None:
    """All noise of a question together costs no more than was asked, and no less than was charged."""
    measures = [noise.release for noise in noises if isinstance(noise.release, Measure | Drawn | Divided | Voted)]
    selections = [noise.release for noise in noises if isinstance(noise.release, PartitionSelection)]
    thresholds = beside(answer, [*(m.event for m in measures), *(s.event for s in selections)])
    epsilon = question.epsilon - sum((selection.epsilon for selection in selections), Fraction(0))
    deltas = [*(s.delta for s in selections), *(t.delta for t in thresholds)]
    delta = question.delta - sum(deltas, Fraction(0))
    totals = {law: sum((allowance(m.event) for m in measures if m.law == law), Fraction(0)) for law in LAWS}
    left = epsilon - totals["laplace"]
    assert measures
    assert {measure.law for measure in measures} <= set(LAWS)
    assert delta >= 0
    assert left >= 0
    if totals["gaussian"]:
        assert zcdp_epsilon(float_above(totals["gaussian"]), float_below(delta)) <= float(left) * ROUNDING
    if isinstance(answer.cost, PureDP):
        assert answer.cost.epsilon >= totals["laplace"]
        assert not totals["gaussian"]


def _parts(event: events.Event) -> Iterator[events.Event]:
    """The events that an event is composed of, of one question or of several stages."""
    if not isinstance(event, events.Composed):
        yield event
        return
    for part in event.events:
        yield from _parts(part)


def beside(answer: Answer, released: list[events.Event]) -> list[events.Approx]:
    """What was charged beside the releases: every release is in the event, and the rest are deltas of thresholds."""
    assert isinstance(answer.event, events.Composed)
    paid = list(_parts(answer.event))
    for event in released:
        paid.remove(event)
    thresholds = [rest for rest in paid if isinstance(rest, events.Approx) and rest.epsilon == 0]
    assert len(thresholds) == len(paid)
    return thresholds
