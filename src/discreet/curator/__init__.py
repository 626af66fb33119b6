"""The room that knows both data and money: programs chosen from public facts, charged, and only then run."""

from discreet.curator.asking.answer import Answer
from discreet.curator.asking.explanation import Explanation
from discreet.curator.curator import Curator
from discreet.measurement.program.execution import Released, run
from discreet.measurement.program.program import Program, choose

__all__ = ["Answer", "Curator", "Explanation", "Program", "Released", "choose", "run"]
