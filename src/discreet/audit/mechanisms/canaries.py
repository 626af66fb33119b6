"""One run, many canaries: a lower bound on epsilon without running the mechanism twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet import check
from discreet.audit.mechanisms.claims import claim_of
from discreet.audit.mechanisms.confidence_bounds import one_run_epsilon
from discreet.audit.mechanisms.distinguisher import CONFIDENCE
from discreet.audit.mechanisms.finding import OneRun
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.noise import Bits
from discreet.noise.experiment import coins
from discreet.privacy.events import Event


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
    """A certified lower bound on the epsilon of something that is too costly to run often, such as a training run.

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
    chance = check.probability(confidence=confidence)
    listed = list(canaries)
    most = check.integer(canaries=len(listed), at_least=1)
    made = most if guesses is None else check.integer(guesses=guesses, at_least=1, at_most=most)
    if not callable(mechanism):
        raise InvalidParameter("mechanism", mechanism, "to be a function of the included canaries")
    claim = claim_of(mechanism, epsilon=epsilon, delta=delta, event=event)
    included = coins(most, bits=bits).astype(bool)
    output = mechanism([canary for canary, inside in zip(listed, included, strict=True) if inside])
    scores = np.array([float(score(output, canary)) for canary in listed])
    order = np.argsort(-scores, kind="stable")
    inside, outside = order[: (made + 1) // 2], order[most - made // 2 :]
    correct = int(included[inside].sum() + (~included[outside]).sum())
    miss = float(1 - chance)
    return OneRun(
        mechanism=str(getattr(mechanism, "__name__", type(mechanism).__name__)),
        epsilon_lower=one_run_epsilon(most, made, correct, delta=claim.delta, outside=miss),
        epsilon_claimed=claim.epsilon,
        delta=claim.delta,
        confidence=float(chance),
        runs=1,
        most=one_run_epsilon(most, made, made, delta=claim.delta, outside=miss),
        canaries=most,
        guesses=made,
        correct=correct,
    )
