"""Draws: what is chosen by the exponential mechanism instead of getting noise. Quantiles by rank, modes by count.

A draw knows what it reads, what it costs and how it is released; what an aggregate makes of it is in `aggregates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol, Self

import numpy as np

from discreet.dataclass import dataclass
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.candidates import CandidateDraw, Candidates, checked_candidates
from discreet.measurement.releases.needs import ModeNeed, Need, RankNeed
from discreet.measurement.releases.rank_draws import RankDrawRequest, Read
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.value_counts import Key
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import TableSchema
from discreet.privacy import events


class Draws(Protocol):
    """Everything of one kind that a question draws."""

    @property
    def by_need(self) -> Mapping[Need, object]:
        """Returns what is drawn for each need."""

    @property
    def columns(self) -> int:
        """Returns how many numbers are released of each group."""

    @property
    def prices(self) -> Sequence[events.Event]:
        """Returns what all of it costs."""

    @property
    def laws(self) -> Sequence[str]:
        """Returns what is drawn, in words."""

    def readings(self, reading: Reading) -> tuple[Reading, ...]:
        """Returns what is read first, given the reading of the question."""

    def release(self, reading: Reading, shown: Sequence[Key], read: Read, releaser: Releaser) -> Integers:
        """Returns a row for each group that is shown, and a column for each number."""

    def example_numbers(self, rows: int) -> list[int]:
        """Returns the numbers as they may come out for a group of so many rows."""


class DrawRequest(Protocol):
    """Needs of one kind with the public facts that they are drawn from, before a budget is known."""

    def __len__(self) -> int: ...

    def plan_draws(self, contribution: QueryContribution, budget: tuple[Law, Fraction], place: int) -> Draws:
        """Returns what serves them for a share of an epsilon each, or of a rho where the law is Gaussian."""


@dataclass(frozen=True, slots=True)
class CandidateDraws:
    """All modes of a question."""

    draws: Mapping[ModeNeed, CandidateDraw]

    @property
    def by_need(self) -> Mapping[Need, CandidateDraw]:
        """Returns what is drawn for each need."""
        return dict(self.draws.items())

    @property
    def columns(self) -> int:
        """Returns how many numbers are released of each group."""
        return len(self.draws)

    @property
    def prices(self) -> Sequence[events.Event]:
        """Returns what each candidate costs."""
        return [draw.event for draw in self.draws.values()]

    @property
    def laws(self) -> Sequence[str]:
        """Returns what is drawn, in words."""
        return [str(draw) for draw in self.draws.values()]

    def example_numbers(self, rows: int) -> list[int]:
        """Returns the first candidate of each."""
        del rows
        return [0] * len(self.draws)

    def readings(self, reading: Reading) -> tuple[Reading, ...]:
        """Returns one for each list of candidates, rows counted by them."""
        splits = dict.fromkeys(draw.candidates.split for draw in self.draws.values())
        return tuple(replace(reading, statistics=(), split=split) for split in splits)

    def release(self, reading: Reading, shown: Sequence[Key], read: Read, releaser: Releaser) -> Integers:
        """Returns a row for each group and a column for each mode, as places among its candidates."""
        found = np.empty((len(shown), len(self.draws)), dtype=object)
        for part in self.readings(reading):
            groups = read(part)
            for column, draw in enumerate(self.draws.values()):
                if draw.candidates.split == part.split:
                    found[:, column] = releaser.candidates(draw, groups, shown)
        return found


@dataclass(frozen=True, slots=True)
class CandidateDrawRequest:
    """Modes that are asked for, and the candidates of each."""

    candidates: Mapping[ModeNeed, Candidates]

    @classmethod
    def of(cls, needs: Iterable[Need], schema: TableSchema, *, former: bool) -> Self:
        """Returns the modes among needs.

        Raises:
            UnsupportedQuery: if an argument has no public candidates.
        """
        del former
        modes = [need for need in needs if isinstance(need, ModeNeed)]
        return cls({mode: checked_candidates(mode.argument, schema) for mode in modes})

    def __len__(self) -> int:
        return len(self.candidates)

    def plan_draws(self, contribution: QueryContribution, budget: tuple[Law, Fraction], place: int) -> CandidateDraws:
        """Returns what draws each of them for the same share."""
        law, share = budget
        made = {mode: CandidateDraw.of(law, each, contribution, share) for mode, each in self.candidates.items()}
        return CandidateDraws({mode: replace(each, place=place + i) for i, (mode, each) in enumerate(made.items())})


KINDS: dict[type[Need], type[RankDrawRequest | CandidateDrawRequest]] = {
    RankNeed: RankDrawRequest,
    ModeNeed: CandidateDrawRequest,
}
"""What draws each kind of need, in the order of columns and events."""
