"""What an audit of questions found: a verdict, figures, and words that say what it shows and what it cannot show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from discreet.audit.queries.verdicts import Violation
from discreet.privacy import Neighbours
from discreet.report.charts import Spec
from discreet.report.comparison_charts import paid_and_used
from discreet.report.display import percent
from discreet.report.render import chart

SHOWS = (
    "Every number that meets noise, and everything else that an analyst can see, was compared on both tables while the "
    "same noise came out: answers and models, groups, notes, refusals, prices, the number of reads."
)
CANNOT_SHOW = (
    "That other pairs of tables would do as well: only these were tried.",
    "That noise has exactly the law it should have, and that nobody can foresee it: here only its size is looked at.",
    "How long answers take, and what else leaves by another way than the answer.",
    "That what you declared is wise: who one unit is, whether bounds and keys were known before anybody saw the data.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One question on all pairs of neighbours.

    Attributes:
        sql: the question.
        answered: on how many pairs it was answered.
        replayed: on how many of them for nothing, from what was answered before.
        status: how it ended where it was not answered; "answered" if it always was.
        releases: how many mechanisms drew for it.
        epsilon_lower: no smaller epsilon is true of this question: a certified lower bound, from the pairs tried.
        share: the largest part of what was paid that a pair used up, in the currency that was paid; more than 1 is a
            violation.
    """

    sql: str
    answered: int
    replayed: int
    status: str
    releases: int
    epsilon_lower: float
    share: Fraction


@dataclass(frozen=True, kw_only=True)
class QueryAudit:
    """The verdict on a curator's answers to some questions.

    Attributes:
        questions: one by one.
        epsilon_claimed: of each question.
        delta_claimed: of each question.
        neighbours: how many pairs of neighbouring tables were tried.
        relation: what makes them neighbours.
        unit: who is protected, in words.
        table: its name.
        violations: everything that told neighbours apart and no noise covers.
        subject: what each of them is, a question or a fit.
    """

    questions: tuple[Audited, ...]
    epsilon_claimed: Fraction
    delta_claimed: Fraction
    neighbours: int
    relation: Neighbours
    unit: str
    table: str
    violations: tuple[Violation, ...]
    subject: str = "question"

    @property
    def unanswered(self) -> tuple[Audited, ...]:
        """Questions of which nothing was learned, because they were never answered."""
        return tuple(each for each in self.questions if not each.answered)

    @property
    def passed(self) -> bool:
        """Whether every question was answered and no violation was found; True proves nothing beyond what was tried."""
        return not self.violations and not self.unanswered and self.neighbours > 0

    @property
    def epsilon_lower(self) -> float:
        """The largest certified lower bound of all questions."""
        return max((each.epsilon_lower for each in self.questions), default=0.0)

    @property
    def share(self) -> Fraction:
        """The largest part of what was paid that a pair of neighbours used up."""
        return max((each.share for each in self.questions), default=Fraction(0))

    @property
    def record(self) -> dict[str, Any]:
        """Everything as plain values, for JSON; shares and epsilons are rounded to doubles."""
        return {
            "table": self.table,
            "passed": self.passed,
            "epsilon_claimed": float(self.epsilon_claimed),
            "delta_claimed": float(self.delta_claimed),
            "epsilon_lower": self.epsilon_lower,
            "share": float(self.share),
            "neighbours": self.neighbours,
            "relation": self.relation.value,
            "unit": self.unit,
            "questions": [asdict(each) | {"share": float(each.share)} for each in self.questions],
            "violations": [asdict(violation) for violation in self.violations],
        }

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        asked = f"{len(self.questions)} {self.subject}{'s' * (len(self.questions) != 1)}"
        tried = f"{self.neighbours} pairs of neighbouring tables"
        if self.passed:
            return f"Passed: {asked} on {tried}, and nothing but noise told them apart"
        if not self.violations:
            return f"Not audited: {len(self.unanswered)} of {asked} were never answered"
        kinds = ", ".join(dict.fromkeys(violation.kind for violation in self.violations))
        return f"FAILED: {len(self.violations)} violations by {asked} on {tried} ({kinds})"

    def summary(self) -> str:
        """The verdict in plain sentences: what was tried, what it shows, what it cannot show."""
        lines = [
            f"{self.headline}.",
            f"Neighbours of {self.table} differ in one {self.unit}, who is {_RELATIONS[self.relation]}.",
            f"Each {self.subject} claims epsilon {_number(self.epsilon_claimed)}"
            + (f" and delta {_number(self.delta_claimed)}. " if self.delta_claimed else ". ")
            + f"The pair that was farthest apart used {percent(self.share)} of what was paid"
            + (f"; epsilon is certainly at least {self.epsilon_lower:.3g}." if self.subject == "question" else "."),
            *(f"- {violation}" for violation in self.violations[:10]),
            *(["- and more"] if len(self.violations) > 10 else []),
            *(f"- never answered ({each.status}): {each.sql}" for each in self.unanswered),
            "What this shows: " + SHOWS,
            "What it cannot show: " + " ".join(CANNOT_SHOW),
        ]
        return "\n".join(lines)

    def spec(self) -> Spec:
        """The chart as a dictionary of Vega-Lite: of what was paid for each question, how much neighbours used."""
        return paid_and_used({each.sql: float(each.share) for each in self.questions}, headline=self.headline)

    def chart(self) -> Any:
        """An Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())


_RELATIONS = {
    Neighbours.ADD_REMOVE: "there in one table and not in the other",
    Neighbours.REPLACE: "replaced by another one",
}


def _number(value: Fraction) -> str:
    return f"{float(value):g}"
