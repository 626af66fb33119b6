"""An audit of questions as a page, for readers who have never heard of epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from discreet.audit.queries.finding import CANNOT_SHOW, SHOWS, QueryAudit
from discreet.errors import MissingExtra
from discreet.privacy import Neighbours
from discreet.report import page
from discreet.report.display import percent, plain
from discreet.report.html import Html

LEAD = (
    "Whoever reads the answers of this system must not be able to tell whether any one person is in the data. Here "
    "this was tried out: the same questions were put to pairs of tables that differ in one person only."
)
HOW = (
    "Answers are blurred with random noise, and how much is fixed before anybody looks at the data. For each pair the "
    "noise of the first answer was recorded and used again for the second. So whatever still differed was not hidden "
    "by noise; and how far apart the exact numbers behind the noise are was measured, and compared with what the noise "
    "is made to hide. That is what was paid for: every question costs a part of a budget, and more noise costs less."
)
EPSILON = (
    "Epsilon says how much one person's data may change what is published: no outcome may become more than e^epsilon "
    "times likelier through them, and smaller is safer. The last column is a proven lower limit of the true epsilon, "
    "where one can be told from these pairs; it must not be larger than what the question may cost."
)
KEEP = "This page depends on the data, if only a little: it is for those who look after them, and not for publication."
_COLUMNS = ("question", "outcome", "used of what was paid", "epsilon at least")
_FAULTS = ("what", "expected", "found", "the two tables", "question")
_STRANGERS = (
    "real people taken away from the data, or replaced",
    "invented people at the ends of all declared bounds, with many rows and in many groups",
    "invented people beyond all bounds: infinite numbers, dates at the ends of the calendar, groups nobody declared",
    "invented people of whom nothing is known, or with empty and odd texts",
)


def audit_page(audits: Sequence[QueryAudit]) -> str:
    """A whole document about the audits of some tables."""
    parts = [piece for audit in audits for piece in parts_of(audit)]
    cannot = page.section("cannot", "What this cannot show", page.bullets(*CANNOT_SHOW), page.paragraph(KEEP))
    how = page.section("how", "How it was tried", page.paragraph(HOW), page.bullets(*_STRANGERS))
    return page.document("Can anybody be told apart?", *parts, how, cannot, lead=LEAD)


def parts_of(audit: QueryAudit) -> list[Html]:
    """One audit: the verdict, figures, the chart, the questions, and what was found against them."""
    relation = "added or taken away" if audit.relation is Neighbours.ADD_REMOVE else "replaced"
    pieces = [
        page.paragraph(
            f"{audit.headline}. The tables of a pair differ in one {plain(audit.unit)}, who was {relation}."
        ),
        page.facts(
            {
                "pairs of tables": f"{audit.neighbours:,}",
                "questions": f"{len(audit.questions):,}",
                "most used of what was paid": percent(audit.share),
                "violations": f"{len(audit.violations):,}",
            }
        ),
        page.paragraph(f"What this shows: {SHOWS}"),
    ]
    with suppress(MissingExtra):  # the page says everything without its chart, too
        caption = "At the dashed line noise hides exactly what it was paid for; beyond it would be a violation."
        pieces.append(page.figure(audit.spec(), caption=caption, description=audit.summary()))
    pieces += [_questions(audit), page.paragraph(EPSILON, kind="small")]
    if audit.violations:
        rows = [(v.kind, v.expected, v.found, v.neighbour, plain(v.question)) for v in audit.violations[:100]]
        pieces.append(page.table(_FAULTS, rows, caption="Violations"))
    return [page.section(f"table-{plain(audit.table)}", f"The table {plain(audit.table)}", *pieces)]


def _questions(audit: QueryAudit) -> Html:
    claimed = f"Questions; each may cost epsilon {float(audit.epsilon_claimed):g}"
    rows = [
        (
            plain(each.sql),
            "answered" if each.answered == audit.neighbours else f"{each.status}, {each.answered} times answered",
            percent(each.share),
            f"{each.epsilon_lower:.3g}" if each.epsilon_lower else "not told",
        )
        for each in audit.questions
    ]
    return page.table(_COLUMNS, rows, caption=claimed, numbers=_COLUMNS[2:])
