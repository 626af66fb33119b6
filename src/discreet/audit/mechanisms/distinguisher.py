"""Audits by runs: many runs on each of two datasets, or many canaries in one run, and a test that separates them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet import check
from discreet.audit.mechanisms.confidence_bounds import certified_epsilon, certified_mu, most_epsilon, one_run_epsilon
from discreet.audit.mechanisms.epsilon_bound import Audit, Claim, OneRun, claim_of
from discreet.audit.mechanisms.output_events import Runs, Score, search
from discreet.audit.mechanisms.output_features import ErrorOutput, columns_of
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.mechanisms import Mechanism
from discreet.noise import Bits, source_of
from discreet.noise.experiment import coins
from discreet.privacy import Neighbours
from discreet.privacy.events import Event

CONFIDENCE = Fraction(19, 20)
_FEWEST = 40  # runs: ten to fit, ten to choose, twenty to count
_MOST = 10**8
_TRIED = 1000  # events, about: rare ones that separate the datasets only by chance are left alone


def distinguish(
    mechanism: Mechanism | Callable[[Any], Any],
    a: Any,
    b: Any,
    *,
    runs: int = 100_000,
    confidence: Number = CONFIDENCE,
    epsilon: Number | None = None,
    delta: Number | None = None,
    event: Event | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    bits: Bits | None = None,
) -> Audit:
    """Certifies a lower bound on the epsilon of a mechanism, from its outputs on two neighbours.

    The mechanism runs equally often on both. A quarter of the runs suggests events (values, errors, lengths, keys, low
    bits, and a trained score of all of them), a quarter chooses one, and the other half counts it.

    Args:
        mechanism: a `Mechanism`, whose event is the claim, or any function of one value. What it raises counts as an
            output: the type of the error is seen, its message is not.
        a: a value; a tuple holds the arguments of a `release` that takes several (a vector is a list or an array).
        b: the value on a neighbour. That the two are neighbours is for the caller to know.
        runs: on each of the two.
        confidence: of the bound.
        epsilon: what is claimed, where no event says it.
        delta: at which the claim is looked at; by default what the event's own promises add up to, and 1e-5 more where
            it has a curve.
        event: the claim of a function, instead of epsilon.
        neighbours: the relation for which the event is priced.
        bits: the source of randomness of a `Mechanism`; None is the secure one. Functions bring their own.

    Returns:
        An `Audit`. That it passed proves nothing; that it failed refutes the claim.

    Raises:
        InvalidParameter: if nothing is claimed, or a parameter is outside its domain.

    Formal guarantee: if the runs are independent, and the mechanism is (e, delta)-DP for these two values, then
    epsilon_lower <= e with probability at least `confidence` (see `limits`; the event does not depend on the runs that
    count it). Mechanisms that remember earlier runs are not independent. Running time is not looked at.

    >>> from discreet.mechanisms import Laplace
    >>> from discreet.noise import SeededBits
    >>> found = distinguish(Laplace(epsilon=1, sensitivity=1), 0, 1, runs=2000, bits=SeededBits(1))
    >>> found.passed, 0.6 < found.epsilon_lower < 1
    (True, True)
    >>> broken = distinguish(lambda value: value, 0, 1, epsilon=1, runs=2000)
    >>> broken.passed, broken.event
    (False, 'output is 0')
    """
    each = check.integer(runs=runs, at_least=_FEWEST, at_most=_MOST)
    chance = check.probability(confidence=confidence)
    claim = claim_of(mechanism, epsilon=epsilon, delta=delta, event=event, neighbours=Neighbours(neighbours))
    call = _call(mechanism, source_of(bits))
    name = type(mechanism).__name__ if isinstance(mechanism, Mechanism) else _name(mechanism)
    found = [(_run(call, a), _run(call, b)) for _ in range(each)]
    fit, choose, count = (_runs(part) for part in _split(found))
    outside = float(1 - chance)
    chosen = search(fit, choose, _score(claim, choose.each, outside))
    falls = chosen.falls(count.columns, 2 * count.each)
    hits = int(falls[: count.each].sum()), int(falls[count.each :].sum())
    first, second = hits if chosen.first else hits[::-1]
    lower = float(certified_epsilon(first, second, count.each, delta=claim.delta, outside=outside))
    mu = None if claim.mu is None else float(certified_mu(first, second, count.each, outside=outside))
    return Audit(
        mechanism=name,
        epsilon_lower=lower,
        epsilon_claimed=claim.epsilon,
        delta=claim.delta,
        confidence=float(chance),
        runs=each,
        most=most_epsilon(count.each, delta=claim.delta, outside=outside),
        event=str(chosen),
        likelier_on="a" if chosen.first else "b",
        first=first,
        second=second,
        counted=count.each,
        mu_lower=mu,
        mu_claimed=claim.mu,
    )


def _call(mechanism: Any, bits: Bits) -> Callable[[Any], Any]:
    if isinstance(mechanism, Mechanism):
        release = partial(mechanism.release, bits=bits)
        return lambda value: release(*value) if isinstance(value, tuple) else release(value)
    if not callable(mechanism):
        hint = "Pass a mechanism of discreet.mechanisms, or a function of one value."
        raise InvalidParameter("mechanism", mechanism, "to be a Mechanism or a function", hint)
    function: Callable[[Any], Any] = mechanism
    return function


def _name(mechanism: object) -> str:
    name = getattr(mechanism, "__name__", type(mechanism).__name__)
    return "This function" if name == "<lambda>" else str(name)


def _run(call: Callable[[Any], Any], value: Any) -> Any:
    try:
        return call(value)
    except Exception as error:  # noqa: BLE001 - that and how a run fails is what an attacker sees
        return ErrorOutput(type(error).__name__)


def _split(pairs: list[tuple[Any, Any]]) -> tuple[list[tuple[Any, Any]], ...]:
    """Splits runs into those to fit, to choose and to count by; with one in two parts the bound would mean nothing."""
    quarter, half = len(pairs) // 4, len(pairs) // 2
    return pairs[:quarter], pairs[quarter:half], pairs[half:]


def _runs(pairs: list[tuple[Any, Any]]) -> Runs:
    outputs = [one for one, _ in pairs] + [other for _, other in pairs]
    return Runs(columns_of(outputs), len(pairs))


def _score(claim: Claim, runs: int, outside: float) -> Score:
    """Returns what an event certifies on the runs it is chosen by, much surer than asked: it is the best of many."""
    sure = outside / _TRIED

    def score(first: Any, second: Any) -> Any:
        if claim.mu is not None:
            return certified_mu(first, second, runs, outside=sure)
        return certified_epsilon(first, second, runs, delta=claim.delta, outside=sure)

    return score


def one_run(
    mechanism: Callable[[list[Any]], Any],
    canaries: Sequence[Any],
    score: Callable[[Any, Any], float],
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    event: Event | None = None,
    guesses: int | None = None,
    confidence: Number = CONFIDENCE,
    bits: Bits | None = None,
) -> OneRun:
    """Certifies a lower bound on the epsilon of something that is too costly to run often, such as a training run.

    Each canary is included by a fair coin. The mechanism runs once, on those included; canaries are then ranked by
    their scores, and of the highest it is guessed that they were in, of the lowest that they were not.

    Args:
        mechanism: a function of the list of included canaries; other data it may hold itself.
        canaries: the units to include or not. Each must be one unit of the claim, and the claim must be for adding or
            removing a unit.
        score: of the output and a canary; the higher, the more it seems to have been in.
        epsilon: what is claimed, where no event says it.
        delta: at which the claim is looked at.
        event: the claim, instead of epsilon.
        guesses: about how many canaries to guess, half of them "in"; all by default. Fewer are surer. Fixed before the
            run, without a look at the coins.
        confidence: of the bound.
        bits: the coins of the experiment; None is the secure source. The mechanism brings its own.

    Returns:
        A `OneRun`; that it passed proves nothing.

    Raises:
        InvalidParameter: if nothing is claimed, or a parameter is outside its domain.

    Formal guarantee: if the mechanism is (e, delta)-DP for adding or removing a canary, then epsilon_lower <= e with
    probability at least `confidence`, over the coins and the mechanism (Steinke, Nasr, Jagielski 2023; see
    `limits.one_run_chance`).

    >>> from discreet.noise import SeededBits
    >>> seen = lambda output, canary: canary in output
    >>> leak = one_run(set, range(100), seen, epsilon=1, guesses=80, bits=SeededBits(1))
    >>> leak.correct, round(leak.epsilon_lower, 3), leak.passed
    (80, 3.266, False)
    """
    if not callable(mechanism):
        raise InvalidParameter("mechanism", mechanism, "to be a function of the included canaries")
    game = CanaryGame(canaries, guesses=guesses, confidence=confidence)
    claim = claim_of(mechanism, epsilon=epsilon, delta=delta, event=event)
    name = str(getattr(mechanism, "__name__", type(mechanism).__name__))
    return game.play(mechanism, score, lambda _: claim, name, bits)


class CanaryGame:
    """Holds the guesses of one run, fixed before it.

    Args:
        canaries: the units to include or not.
        guesses: how many to make; None for all.
        confidence: of the bound.

    Raises:
        InvalidParameter: outside these domains.
    """

    def __init__(self, canaries: Sequence[Any], *, guesses: int | None, confidence: Number) -> None:
        self._chance = check.probability(confidence=confidence)
        self._canaries = list(canaries)
        most = check.integer(canaries=len(self._canaries), at_least=1)
        self._guesses = most if guesses is None else check.integer(guesses=guesses, at_least=1, at_most=most)

    def play(
        self,
        mechanism: Callable[[list[Any]], Any],
        score: Callable[[Any, Any], float],
        claim_of_output: Callable[[Any], Claim],
        name: str,
        bits: Bits | None,
    ) -> OneRun:
        """Tosses coins, runs the mechanism once, guesses, and returns what the guesses certify."""
        most, made = len(self._canaries), self._guesses
        included = coins(most, bits=bits).astype(bool)
        output = mechanism([canary for canary, inside in zip(self._canaries, included, strict=True) if inside])
        claim = claim_of_output(output)
        scores = np.array([float(score(output, canary)) for canary in self._canaries])
        order = np.argsort(-scores, kind="stable")
        inside, outside = order[: (made + 1) // 2], order[most - made // 2 :]
        correct = int(included[inside].sum() + (~included[outside]).sum())
        return self._certify_result(claim, correct, name)

    def _certify_result(self, claim: Claim, correct: int, name: str) -> OneRun:
        most, made, miss = len(self._canaries), self._guesses, float(1 - self._chance)
        return OneRun(
            mechanism=name,
            epsilon_lower=one_run_epsilon(most, made, correct, delta=claim.delta, outside=miss),
            epsilon_claimed=claim.epsilon,
            delta=claim.delta,
            confidence=float(self._chance),
            runs=1,
            most=one_run_epsilon(most, made, made, delta=claim.delta, outside=miss),
            canaries=most,
            guesses=made,
            correct=correct,
        )
