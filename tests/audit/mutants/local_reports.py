"""Mistakes in the local model: probabilities that are swapped, rounded or misplaced; clones; memory."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from discreet import mechanisms
from discreet.accounting import shuffled_delta
from discreet.exact import Enclosure
from discreet.local import (
    HadamardResponse,
    LocalHashing,
    PermanentResponse,
    PiecewiseMean,
    SubsetSelection,
    UnaryEncoding,
)
from discreet.local.oracles.oracle import odds
from discreet.noise import Coin, SeededBits
from discreet.privacy import events
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.local.exact_laws import judge_privacy, judge_support, report_law
from tests.statistical.laws import FALSE_ALARM, CategoricalLaw, p_value

EPSILON = Fraction(1)


@catcher("every path of random draws")
def unary_reports_cost_the_requested_epsilon() -> None:
    for symmetric in (False, True):
        oracle = UnaryEncoding(epsilon=EPSILON, domain=3, symmetric=symmetric)
        judge_privacy([report_law(oracle, value) for value in range(3)], EPSILON)


@catcher("every path of random draws")
def unary_reports_support_their_value() -> None:
    oracle = UnaryEncoding(epsilon=EPSILON, domain=3)
    judge_support(oracle, [report_law(oracle, value) for value in range(3)])


@catcher("every path of random draws")
def hashed_reports_cost_the_requested_epsilon_and_support_their_value() -> None:
    oracle = LocalHashing(epsilon=EPSILON, domain=3, hashes=4)
    laws = [report_law(oracle, value) for value in range(3)]
    judge_privacy(laws, EPSILON)
    judge_support(oracle, laws)


@catcher("every path of random draws")
def hadamard_reports_cost_the_requested_epsilon() -> None:
    oracle = HadamardResponse(epsilon=EPSILON, domain=3)
    judge_privacy([report_law(oracle, value) for value in range(3)], EPSILON)


@catcher("every path of random draws")
def windows_of_means_cost_the_requested_epsilon() -> None:
    oracle = PiecewiseMean(epsilon=EPSILON, steps=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_module("means"), "_PLACES", 1)  # three places instead of 2^40
        judge_privacy([report_law(oracle, value) for value in (-1, 0, 1)], EPSILON)


@catcher("distribution of 20,000 reports")
def sets_hold_the_true_value_as_often_as_they_may() -> None:
    oracle = SubsetSelection(epsilon=EPSILON, domain=12)
    p = oracle.size * math.e / (oracle.size * math.e + 12 - oracle.size)
    rows = oracle.privatize(np.zeros(20_000, dtype=np.int64), bits=SeededBits(81)).rows
    assert p_value(rows[:, 0] >> 7, CategoricalLaw((1 - p, p))) > FALSE_ALARM


@catcher("all reports of seven people")
def shuffled_reports_cost_no_more_than_stated() -> None:
    truth = math.e / (1 + math.e)
    laws = []
    for ones in (3, 4):
        law = np.array([1.0])
        for p in [truth] * ones + [1 - truth] * (7 - ones):
            law = np.convolve(law, [1 - p, p])
        laws.append(law)
    for epsilon in (0.1, 0.3, 0.6):
        delta = float(np.maximum(laws[1] - math.exp(epsilon) * laws[0], 0).sum())
        assert delta <= shuffled_delta(events.RandomizedResponse(1, 2), 7, epsilon)


@catcher("two reports")
def asked_again_a_client_sends_the_same() -> None:
    client = PermanentResponse(UnaryEncoding(epsilon=EPSILON, domain=40))
    assert len({client.report(7, bits=SeededBits(seed)).to_json() for seed in range(4)}) == 1


def _module(name: str) -> Any:
    return import_module(f"discreet.local.{name}")


_unary = _module("oracles.unary_encoding")


def _swapped(self: UnaryEncoding, codes: Any, bits: Any) -> Any:
    fair = _unary.bernoulli(Fraction(1, 2), codes.size * self.domain.size, bits=bits)
    members = fair.reshape(codes.size, self.domain.size)
    members[np.arange(codes.size), codes] = ~_exact(self.epsilon, 1, 1).toss_many(codes.size, bits)
    return members


def _exact(epsilon: Fraction, truth: int, lie: int) -> Coin:
    return Coin(lambda digits: odds(epsilon, truth, lie, digits))


def _decimals(epsilon: Fraction, truth: int, lie: int) -> Coin:
    p = Fraction(math.ceil(1000 * float(odds(epsilon, truth, lie).high)), 1000)
    return Coin(lambda digits: Enclosure.of(p, digits))


class _OddsOfTwo(mechanisms.RandomizedResponse):
    def _odds(self, digits: int) -> Enclosure:
        return Enclosure.of(-self.epsilon, digits).exp()


def _fresh(self: PermanentResponse, value: Any, *, bits: Any = None) -> Any:
    return self.oracle.privatize([value], bits=bits)


def _twice(event: Any, reports: int) -> Any:
    return tuple(replace(one, probability=min(1.0, 2 * one.probability)) for one in _CLONES(event, reports))


_SHUFFLE = import_module("discreet.accounting.shuffle")
_CLONES = _SHUFFLE._clones

MUTANTS = [
    Mutant(
        "both bits with the whole epsilon",
        "Each bit of a symmetric unary report is kept with odds e^epsilon, although two values differ in two bits.",
        setting(UnaryEncoding, "_exponent", property(lambda self: self.epsilon)),
        unary_reports_cost_the_requested_epsilon,
    ),
    Mutant(
        "coins of the truth and of the lie swapped",
        "The true bit is set as rarely as the others should be, and the others by a fair coin.",
        setting(UnaryEncoding, "_members", _swapped),
        unary_reports_support_their_value,
    ),
    Mutant(
        "a coin of three decimals",
        "The probability of a parity is rounded up to three decimals.",
        setting(_module("oracles.hadamard_response"), "odds_coin", _decimals),
        hadamard_reports_cost_the_requested_epsilon,
    ),
    Mutant(
        "odds of two hashes for four",
        "The odds of a truthful hash are those of two hashes, although there are four.",
        setting(
            _module("oracles.local_hashing"),
            "response",
            lambda epsilon, hashes: _OddsOfTwo(epsilon=epsilon, options=hashes),
        ),
        hashed_reports_cost_the_requested_epsilon_and_support_their_value,
    ),
    Mutant(
        "another number of hashes",
        "The aggregator computes the support of other values as if there were one more hash.",
        setting(
            LocalHashing,
            "support",
            lambda self, digits=60: (
                odds(self.epsilon, 1, self.hashes - 1, digits),
                Enclosure.of(Fraction(1, self.hashes + 1), digits),
            ),
        ),
        hashed_reports_cost_the_requested_epsilon_and_support_their_value,
    ),
    Mutant(
        "sets weighed as if there were two",
        "The true value is put into the set with odds e^epsilon, whatever the numbers of sets with and without it.",
        setting(_module("oracles.subset_selection"), "odds_coin", lambda epsilon, _t, _l: _exact(epsilon, 1, 1)),
        sets_hold_the_true_value_as_often_as_they_may,
    ),
    Mutant(
        "a window too wide",
        "The coin for the window of a mean counts one more number than the window holds.",
        setting(_module("means"), "odds_coin", lambda epsilon, width, steps: _exact(epsilon, width + 1, steps)),
        windows_of_means_cost_the_requested_epsilon,
    ),
    Mutant(
        "clones counted twice",
        "The account assumes that twice as many shuffled reports hide a person as really do.",
        setting(_SHUFFLE, "_clones", _twice),
        shuffled_reports_cost_no_more_than_stated,
    ),
    Mutant(
        "a memory that forgets",
        "A client that is asked again draws a new report, and the average of its reports reveals its value.",
        setting(PermanentResponse, "report", _fresh),
        asked_again_a_client_sends_the_same,
    ),
]
