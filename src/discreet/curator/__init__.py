"""The room that knows both data and money: programs chosen from public facts, charged, and only then run."""

from discreet.curator.answer import Answer
from discreet.curator.curator import Curator
from discreet.curator.explain import Explanation
from discreet.curator.program import Program, choose
from discreet.curator.run import Released, run

__all__ = ["Answer", "Curator", "Explanation", "Program", "Released", "choose", "run"]
