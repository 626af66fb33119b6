"""What an audit of questions found: a verdict, figures, and words that say what it shows and what it cannot show.

The page is for readers who have never heard of epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from discreet.audit.queries.verdicts import Violation
from discreet.dataclass import dataclass
from discreet.errors import MissingExtra
from discreet.privacy import Neighbours
from discreet.report import page
from discreet.report.charts import Spec
from discreet.report.comparison_charts import paid_and_used
from discreet.report.display import Display, DisplayMixin, percent, plain
from discreet.report.html import Html
from discreet.report.render import chart

SHOWS = (
    "Every number that gets noise, and everything else that an analyst can see, was compared on both tables with the "
    "same noise: answers and models, groups, notes, refusals, prices, the number of reads."
)
CANNOT_SHOW = (
    "That other pairs of tables would pass as well: only these were tried.",
    "That noise has exactly the right law and cannot be predicted: only its size is checked here.",
    "What leaks in other ways than through the answer, such as the time that an answer takes.",
    "That your declarations are right: who one unit is, and that bounds and keys were fixed before you saw the data.",
)
_COLUMNS = ("question", "outcome", "share of price used", "epsilon at least")
_MOST_SHOWN = 10  # violations in a text
_RELATIONS = {
    Neighbours.ADD_REMOVE: "in one table and not in the other",
    Neighbours.REPLACE: "replaced by another one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryVerdict:
    """Reports one question on all pairs of neighbours.

    Attributes:
        sql: the question.
        answered: on how many pairs it was answered.
        replayed: on how many of them for nothing, from what was answered before.
        status: how it ended where it was not answered; "answered" if it always was.
        releases: how many mechanisms drew for it.
        epsilon_lower: no smaller epsilon is true of this question: a certified lower bound, from the pairs tried.
        share: the largest part of what was paid that a pair used up, in the currency that was paid; more than 1 is a
            violation.

    >>> from discreet import Budget, Curator
    >>> from discreet.audit import query
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> def held(rows):
    ...     curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    ...     curator.protect(rows, name="a", types={"age": "int"}, bounds={"age": (0, 120)}, budget=Budget(epsilon=9))
    ...     return curator
    >>> sql = ["SELECT COUNT(*) AS n FROM a", "SELECT MEDIAN(age) AS age FROM a"]
    >>> found = query(held, sql, [{"age": 40}, {"age": 50}], neighbours=4)
    >>> [(each.answered, each.releases, each.epsilon_lower, float(each.share)) for each in found.questions]
    [(4, 1, 1.0, 1.0), (4, 3, 0.0, 1.0)]
    """

    sql: str
    answered: int
    replayed: int
    status: str
    releases: int
    epsilon_lower: float
    share: Fraction


@dataclass(frozen=True, kw_only=True)
class QueryAudit(DisplayMixin):
    """Reports the verdict on a curator's answers to some questions.

    Attributes:
        questions: one by one.
        epsilon_claimed: of each question.
        delta_claimed: of each question.
        neighbours: how many pairs of neighbouring tables were tried.
        relation: what makes them neighbours.
        unit: who is protected, in words.
        table: its name.
        violations: all that separates neighbours and that no noise covers.
        subject: what each of them is, a question or a fit.

    >>> from discreet import Budget, Curator
    >>> from discreet.audit import query
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> def held(rows):
    ...     curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    ...     curator.protect(rows, name="a", types={"age": "int"}, bounds={"age": (0, 120)}, budget=Budget(epsilon=9))
    ...     return curator
    >>> print(query(held, "SELECT AVG(age) AS age FROM a", [{"age": 40}, {"age": 50}], neighbours=4))
    a: Passed: 1 question on 4 pairs of neighbouring tables, with no difference beyond the noise
    question                       outcome   share of price used  epsilon at least
    -----------------------------  --------  -------------------  ----------------
    SELECT AVG(age) AS age FROM a  answered                100 %                 1
    - Each question claims epsilon 1.
    - Only these pairs of tables were tried; summary() says what an audit cannot show.
    """

    questions: tuple[QueryVerdict, ...]
    epsilon_claimed: Fraction
    delta_claimed: Fraction
    neighbours: int
    relation: Neighbours
    unit: str
    table: str
    violations: tuple[Violation, ...]
    subject: str = "question"

    @property
    def unanswered_queries(self) -> tuple[QueryVerdict, ...]:
        """Returns questions about which nothing was learned, because they were never answered."""
        return tuple(each for each in self.questions if not each.answered)

    @property
    def passed(self) -> bool:
        """Returns whether every question was answered and no violation was found.

        True proves nothing beyond what was tried.
        """
        return not self.violations and not self.unanswered_queries and self.neighbours > 0

    @property
    def epsilon_lower(self) -> float:
        """Returns the largest certified lower bound of all questions."""
        return max((each.epsilon_lower for each in self.questions), default=0.0)

    @property
    def share(self) -> Fraction:
        """Returns the largest part of what was paid that a pair of neighbours used up."""
        return max((each.share for each in self.questions), default=Fraction(0))

    @property
    def record(self) -> dict[str, Any]:
        """Returns everything as plain values, for JSON; shares and epsilons are rounded to doubles."""
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
        """Returns the verdict in one line."""
        asked = f"{len(self.questions)} {self.subject}{'s' * (len(self.questions) != 1)}"
        tried = f"{self.neighbours} pairs of neighbouring tables"
        if self.passed:
            return f"Passed: {asked} on {tried}, with no difference beyond the noise"
        if not self.violations:
            return f"Not audited: {len(self.unanswered_queries)} of {asked} were never answered"
        kinds = ", ".join(dict.fromkeys(violation.kind for violation in self.violations))
        return f"FAILED: {len(self.violations)} violations by {asked} on {tried} ({kinds})"

    def summary(self) -> str:
        """Returns the verdict in plain sentences: what was tried, what it shows, what it cannot show."""
        lines = [
            f"{self.headline}.",
            f"Neighbours of {self.table} differ in one {self.unit}, who is {_RELATIONS[self.relation]}.",
            f"Each {self.subject} claims epsilon {_number(self.epsilon_claimed)}"
            + (f" and delta {_number(self.delta_claimed)}. " if self.delta_claimed else ". ")
            + f"The pair that was farthest apart used {percent(self.share)} of what was paid"
            + (f"; epsilon is certainly at least {self.epsilon_lower:.3g}." if self.subject == "question" else "."),
            *(f"- {violation}" for violation in self.violations[:_MOST_SHOWN]),
            *(["- and more"] if len(self.violations) > _MOST_SHOWN else []),
            *(f"- never answered ({each.status}): {each.sql}" for each in self.unanswered_queries),
            "What this shows: " + SHOWS,
            "What it cannot show: " + " ".join(CANNOT_SHOW),
        ]
        return "\n".join(lines)

    def spec(self) -> Spec:
        """Returns the chart as a dictionary of Vega-Lite: how much neighbours used of what each question paid."""
        return paid_and_used({each.sql: float(each.share) for each in self.questions}, headline=self.headline)

    def chart(self) -> Any:
        """Returns an Altair chart; its dictionary where Altair is not installed."""
        return chart(self.spec())

    def _display(self) -> Display:
        more = len(self.violations) - _MOST_SHOWN
        notes = [
            f"Each {self.subject} claims epsilon {_number(self.epsilon_claimed)}"
            + (f" and delta {_number(self.delta_claimed)}." if self.delta_claimed else "."),
            *map(str, self.violations[:_MOST_SHOWN]),
            *([f"and {more} more violations"] if more > 0 else []),
            "Only these pairs of tables were tried; summary() says what an audit cannot show.",
        ]
        title = f"{self.table}: {self.headline}"
        return Display(title=title, columns=_COLUMNS, rows=_rows(self), numbers=_COLUMNS[2:], notes=notes)


def _number(value: Fraction) -> str:
    return f"{float(value):g}"


LEAD = (
    "Readers of this system's answers must not learn whether any one person is in the data. This audit tested that: "
    "it asked the same questions about pairs of tables that differ in only one person."
)
HOW = (
    "Random noise blurs the answers; its size is fixed before the data are read. For each pair, the audit recorded the "
    "noise of the first answer and used it again for the second. So noise did not hide the remaining differences. The "
    "audit also measured how far apart the exact numbers behind the noise are, and compared that with what the noise "
    "is made to hide. The price pays for that: every question costs a part of a budget, and more noise costs less."
)
EPSILON = (
    "Epsilon says how much one person's data may change what is published: no outcome may become more than e^epsilon "
    "times likelier through those data. Smaller is safer. The last column is a proven lower limit of the true epsilon, "
    "if these pairs prove one. It must not be larger than what the question may cost."
)
FULL = (
    "A good mechanism uses all of the price: it adds the noise that is needed and no more. Only more than all of the "
    "price would be a violation."
)
KEEP = "This page depends on the data, if only a little. Show it only to those who look after them. Do not publish it."
_FAULTS = ("what", "expected", "found", "the two tables", "question")
_STRANGERS = (
    "real people removed from the data, or replaced",
    "synthetic people at the ends of all declared bounds, with many rows and in many groups",
    "synthetic people beyond all bounds: infinite numbers, dates at the ends of the calendar, and undeclared groups",
    "synthetic people about whom nothing is known, or with empty and odd texts",
)


def audit_page(audits: Sequence[QueryAudit]) -> str:
    """Returns a whole document about the audits of some tables."""
    passed = bool(audits) and all(audit.passed for audit in audits)
    word = "Passed" if passed else "Failed"
    told = f"{len(audits)} table{'s' * (len(audits) != 1)}: " + "; ".join(
        f"{plain(audit.table)} {'passed' if audit.passed else 'did not pass'}" for audit in audits
    )
    parts = [page.verdict(word, f"{told}.", passed=passed), *(piece for audit in audits for piece in parts_of(audit))]
    cannot = page.section("cannot", "What this cannot show", page.bullets(*CANNOT_SHOW), page.paragraph(KEEP))
    how = page.section("how", "How it was tried", page.paragraph(HOW), page.bullets(*_STRANGERS))
    return page.document("Can one person's data be detected?", *parts, how, cannot, lead=LEAD)


def parts_of(audit: QueryAudit) -> list[Html]:
    """Returns one audit: the verdict, figures, the chart, the questions, and what was found against them."""
    relation = "added or removed" if audit.relation is Neighbours.ADD_REMOVE else "replaced"
    pieces = [
        page.verdict(
            *(f"{part}{end}" for part, end in zip(audit.headline.split(": ", 1), ("", "."), strict=True)),
            passed=audit.passed,
        ),
        page.paragraph(f"The tables of a pair differ in one {plain(audit.unit)}, who was {relation}."),
        page.facts(
            {
                "pairs of tables": f"{audit.neighbours:,}",
                "questions": f"{len(audit.questions):,}",
                "violations": f"{len(audit.violations):,}",
                "most that neighbours used": f"{percent(audit.share)} of the price",
            }
        ),
        page.paragraph(f"{FULL} What this shows: {SHOWS}"),
    ]
    with suppress(MissingExtra):  # the page says everything without its chart, too
        caption = "A bar that ends at the line is a pass: noise hides just what was paid for. Numbers: see the table."
        pieces.append(page.figure(audit.spec(), caption=caption, description=audit.summary(), broad=True))
    pieces += [_questions(audit), page.paragraph(EPSILON, kind="small")]
    if audit.violations:
        rows = [(v.kind, v.expected, v.found, v.neighbour, plain(v.question)) for v in audit.violations[:100]]
        pieces.append(page.table(_FAULTS, rows, caption="Violations"))
    return [page.section(f"table-{plain(audit.table)}", f"The table {plain(audit.table)}", *pieces)]


def _questions(audit: QueryAudit) -> Html:
    claimed = f"Questions; each may cost epsilon {float(audit.epsilon_claimed):g}"
    rows = [
        (f"{place}.", each[0], _VERDICTS[_verdict(audit, asked)], *each[1:])
        for place, (asked, each) in enumerate(zip(audit.questions, _rows(audit), strict=True), 1)
    ]
    return page.table(("", _COLUMNS[0], "verdict", *_COLUMNS[1:]), rows, caption=claimed, numbers=_COLUMNS[2:])


_VERDICTS = {True: "✓\u00a0passed", False: "✗\u00a0violated", None: "not audited"}


def _verdict(audit: QueryAudit, asked: QueryVerdict) -> bool | None:
    """Returns whether a question passed; None if it was never answered."""
    if asked.share > 1 or any(violation.question == asked.sql for violation in audit.violations):
        return False
    return True if asked.answered else None


def _rows(audit: QueryAudit) -> list[tuple[str, ...]]:
    return [
        (
            plain(each.sql),
            "answered" if each.answered == audit.neighbours else f"{each.status}, answered {each.answered} times",
            percent(each.share),
            f"{each.epsilon_lower:.3g}" if each.epsilon_lower else "none proven",
        )
        for each in audit.questions
    ]
