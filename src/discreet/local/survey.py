"""Randomized surveys: a question with a list of answers, reports line by line, and a table of shares.

A survey is a small public JSON file. Respondents randomize their answers on their own side; what they
send is one line of JSON with the mark of the survey, so that reports of another one are noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.local.oracles.best_oracle import KINDS, best
from discreet.local.oracles.domain import ValueDomain
from discreet.local.oracles.frequencies import Frequencies
from discreet.local.oracles.oracle import FrequencyOracle
from discreet.local.oracles.reports import Reports, canonical
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits

VERSION = 1
_LONGEST = 1 << 22  # characters of a survey
_MARK = 16  # hexadecimal digits: two surveys have the same by accident once in 10^19 pairs
_HINT = "Make one with: discreet survey make FILE --question TEXT --value A --value B --epsilon 1"


@dataclass(frozen=True, slots=True, init=False)
class Survey:
    """A question, its answers, how private each report is, and the oracle that was chosen for it.

    Args:
        question: what is asked.
        values: the answers to choose from, at least two different texts.
        epsilon: of one report.
        people: about how many will answer; the best oracle for so many is chosen.
        oracle: the name of an oracle instead, as a survey that was written says it.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: each line that `answer` returns is epsilon-DP for the person whose answer it is.

    >>> survey = Survey(question="Do you smoke?", values=["yes", "no"], epsilon=40)
    >>> lines = survey.answer(["yes", "no", "no", "no"])
    >>> print(Survey.from_json(survey.to_json()).estimate(lines).of("yes").value)
    0.25
    """

    question: str
    values: tuple[str, ...]
    epsilon: Fraction
    oracle: FrequencyOracle

    def __init__(
        self,
        *,
        question: str,
        values: Iterable[str],
        epsilon: check.Number,
        people: int = 1000,
        oracle: str | None = None,
    ) -> None:
        answers = tuple(values) if not isinstance(values, str) else (values,)
        for answer in answers:
            check.label(value=answer)
        domain = ValueDomain(answers)
        assign(
            self,
            question=check.label(question=question),
            values=answers,
            epsilon=check.positive(epsilon=epsilon),
            oracle=best(domain, epsilon, people)
            if oracle is None
            else _find_oracle(oracle)(epsilon=epsilon, domain=domain),
        )

    @property
    def mark(self) -> str:
        """Returns the mark of its reports, which follows from everything that the survey says."""
        return hashlib.sha256(canonical(self._fields()).encode()).hexdigest()[:_MARK]

    def _fields(self) -> dict[str, Any]:
        told = {"question": self.question, "values": list(self.values), "epsilon": str(self.epsilon)}
        return {"discreet_survey": VERSION, **told, "oracle": type(self.oracle).__name__}

    def to_json(self) -> str:
        """Returns the survey as the text of a public file."""
        return json.dumps(self._fields(), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Survey:
        """Returns the survey that a file holds.

        Raises:
            InvalidParameter: if it holds none.
        """
        try:
            fields = json.loads(text) if len(text) <= _LONGEST else None
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict) or fields.get("discreet_survey") != VERSION:
            raise InvalidParameter("survey", "a file", "to hold a survey", _HINT)
        told = {name: value for name, value in fields.items() if name != "discreet_survey"}
        if told.keys() != {"question", "values", "epsilon", "oracle"} or not isinstance(told["values"], list):
            raise InvalidParameter("survey", ", ".join(told), "to have a question, values, epsilon and oracle", _HINT)
        return cls(**told)

    def answer(self, answers: Any, *, bits: Bits | None = None) -> list[str]:
        """Returns a randomized report for each answer, as a line to send: the respondent's side.

        Raises:
            InvalidValue: if an answer is not among the values.
        """
        return self.lines(self.oracle.privatize(answers, bits=bits))

    def lines(self, reports: Reports) -> list[str]:
        """Returns reports as lines of text."""
        return [canonical({"report": row, "survey": self.mark}) for row in reports.rows.tolist()]

    def estimate(
        self,
        lines: Iterable[str],
        *,
        confidence: check.Number = CONFIDENCE,
        project: bool = False,
        drop: bool = False,
    ) -> Frequencies:
        """Returns the share of each answer from the lines that were collected.

        Args:
            lines: reports, one in each; empty lines do not count.
            confidence: of each interval.
            project: whether shares are moved to the nearest that are not negative and sum to 1.
            drop: whether lines that no respondent to this survey makes are left out; they are refused otherwise.

        Raises:
            InvalidParameter: for a line that is no report, and for one of another survey; it names the line.
        """
        rows, dropped = self._rows(lines, drop=drop)
        if not rows:
            raise InvalidParameter("reports", "an empty file", "to hold at least one report")
        found = self.oracle.estimate(rows, confidence=confidence, project=project, drop=drop)
        return replace(found, dropped=found.dropped + dropped)

    def _rows(self, lines: Iterable[str], *, drop: bool) -> tuple[list[Any], int]:
        """Returns the reports, and the number of lines that are none of this survey."""
        rows, dropped = [], 0
        for number, line in enumerate(lines, 1):
            try:
                rows += [self._row(number, line)] if line.strip() else []
            except InvalidParameter:
                if not drop:
                    raise
                dropped += 1
        return rows, dropped

    def _row(self, number: int, line: str) -> Any:
        try:
            content = json.loads(line)
            mark, report = content["survey"], content["report"]
        except (ValueError, KeyError, TypeError, RecursionError):
            mark = report = None
        if mark is not None and mark != self.mark:
            hint = "It is for another question, other values or another epsilon; collect those reports apart."
            raise InvalidParameter("reports", f"line {number}", "to be for this survey", hint)
        if not _whole(report, self.oracle.row_shape):
            hint = Hint("Delete that line, or leave such lines out with {drop:True}.")
            raise InvalidParameter("reports", f"line {number}", "to be a report", hint)
        return report


def _whole(report: object, shape: tuple[int, ...]) -> bool:
    """Returns whether a report has the form of a row: one whole number, or as many as a row has."""
    numbers = report if shape else [report]
    if not isinstance(numbers, list) or (shape and len(numbers) != shape[0]):
        return False
    return all(type(number) is int and abs(number) < 1 << 62 for number in numbers)


def _find_oracle(name: object) -> Any:
    kinds = {kind.__name__: kind for kind in KINDS}
    if not isinstance(name, str) or name not in kinds:
        raise InvalidParameter("oracle", name, f"to be one of {', '.join(kinds)}", _HINT)
    return kinds[name]
