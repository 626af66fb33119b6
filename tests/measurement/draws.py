"""What a program draws, by kind, and what it reads for that."""

from __future__ import annotations

from discreet.measurement.program.program import Program
from discreet.measurement.releases.candidates import CandidateDraw
from discreet.measurement.releases.draws import CandidateDraws
from discreet.measurement.releases.rank_draws import RankDraw, RankDraws
from discreet.plan.model.readings import Reading


def ranks(program: Program) -> list[RankDraw]:
    """Its quantiles."""
    return [draw for draws in program.draws if isinstance(draws, RankDraws) for draw in draws.draws]


def modes(program: Program) -> list[CandidateDraw]:
    """Its modes."""
    return [draw for draws in program.draws if isinstance(draws, CandidateDraws) for draw in draws.draws.values()]


def readings(program: Program, kind: type[RankDraws | CandidateDraws]) -> list[Reading]:
    """What is read for one kind of draw."""
    return [one for draws in program.draws if isinstance(draws, kind) for one in draws.readings(program.reading)]
