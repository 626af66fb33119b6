"""The demo's conversation: a steward protects the clinic, an analyst asks, and each query gets its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from discreet.curator import Answer, Curator
from discreet.dataclass import dataclass
from discreet.demo.clinic import HIGHEST_CHARGE, MOST_DAYS, MOST_VISITS, TYPES, WARDS
from discreet.errors import DiscreetError
from discreet.plan.model.nodes import Question
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget
from discreet.sql.frame import count, mean

BUDGET = Budget(epsilon=3, delta="1e-6")
BOUNDS = {"age": (0, 120), "days": (1, MOST_DAYS), "charge": (0, HIGHEST_CHARGE)}
KEYS = {"ward": WARDS}
LIMITS = Limits(2, 2)  # groups, and rows in each
EVERY_VISIT = Limits(1, MOST_VISITS)  # for questions without groups


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoQuery:
    """A query of the demo's analyst.

    Attributes:
        name: a few words for it.
        title: what it is about.
        text: the question, as SQL or as Python.
        epsilon: what it may cost.
        remark: what to see in the answer.
        build: the plan, where the text is Python.
        limits: other than the table's.
        bars: released columns that are drawn from zero.
        dots: released columns that are not.
    """

    name: str
    title: str
    text: str
    epsilon: str
    remark: str
    build: Callable[[Curator], Question] | None = None
    limits: Limits | None = None
    bars: tuple[str, ...] = ()
    dots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReply:
    """A query of the demo and its answer, or the reason why it is refused."""

    line: DemoQuery
    answer: Answer | None = None
    refusal: DiscreetError | None = None


WARD_LINE = DemoQuery(
    name="wards",
    title="Visits and average charge by ward",
    text="SELECT ward, COUNT(*) AS visits, AVG(charge) AS cost\nFROM visits GROUP BY ward",
    epsilon="0.5",
    bars=("visits",),
    dots=("cost",),
    remark="Wards are public keys, so every ward is shown, whatever its size.",
)
DIAGNOSIS_LINE = DemoQuery(
    name="diagnoses",
    title="Patients by diagnosis, where diagnoses are private groups",
    text="SELECT diagnosis, COUNT(DISTINCT patient) AS patients\nFROM visits GROUP BY diagnosis ORDER BY patients DESC",
    epsilon="0.6",
    limits=Limits(3, 1),
    bars=("patients",),
    remark="A diagnosis appears only if enough patients share it. The name of a rare one would give its patient away.",
)
_OLDER = """\
curator.table("visits").where("age >= 40")
    .group_by("ward").agg(visits=count(), days=mean("days"))"""
LINES = (
    WARD_LINE,
    DemoQuery(
        name="total",
        title="The sum of all charges",
        text="SELECT SUM(charge) AS total FROM visits",
        epsilon="0.25",
        limits=EVERY_VISIT,
        remark="A patient adds at most three visits of at most 2,000 each, however large the bill was.",
    ),
    DemoQuery(
        name="charge per day",
        title="Charge per day from the age of 65: a filter and expressions",
        text="SELECT COUNT(*) AS visits, AVG(charge / days) AS charge_per_day\nFROM visits\n"
        "WHERE age >= 65 AND charge / days > 100",
        epsilon="0.4",
        limits=EVERY_VISIT,
        remark="Bounds of an expression follow from the bounds of its columns. Nothing is read to find them.",
    ),
    DIAGNOSIS_LINE,
    DemoQuery(
        name="days in bed",
        title="Days in bed from the age of 40, asked in Python",
        text=_OLDER,
        epsilon="0.4",
        build=lambda curator: (
            curator.table("visits").where("age >= 40").group_by("ward").agg(visits=count(), days=mean("days")).question
        ),
        dots=("days",),
        remark="The Python query builds the same plan as the SQL.",
    ),
    DemoQuery(
        name="charge per patient",
        title="Charge per patient, largest first",
        text="SELECT ward, SUM(charge) / COUNT(DISTINCT patient) AS charge_per_patient\nFROM visits GROUP BY ward\n"
        "HAVING COUNT(DISTINCT patient) > 500 ORDER BY charge_per_patient DESC",
        epsilon="0.5",
        dots=("charge_per_patient",),
        remark="Ratios, HAVING and ORDER BY work on released numbers, so they cost nothing more.",
    ),
    DemoQuery(
        name="again",
        title="The first answer again, sorted and limited",
        text="SELECT ward, AVG(charge) AS cost, COUNT(*) AS visits\nFROM visits GROUP BY ward\n"
        "ORDER BY cost DESC LIMIT 2",
        epsilon="0.5",
        remark="It follows from released numbers, so the stored numbers come back at no cost.",
    ),
    DemoQuery(
        name="too many",
        title="One question too many",
        text="SELECT COUNT(*) AS young FROM visits WHERE age < 30",
        epsilon="0.5",
        remark="The account cannot pay. Nothing was read.",
    ),
    DemoQuery(
        name="one row",
        title="A patient's own row",
        text="SELECT patient, charge FROM visits WHERE patient = 4242",
        epsilon="0.1",
        remark="No budget buys a row.",
    ),
)


def protect(curator: Curator, path: Path) -> None:
    """Protects the clinic under the patients' account; everything public is declared, and nothing is read from it."""
    curator.protect(
        str(path),
        name="visits",
        unit="patient",
        account="patients",
        budget=BUDGET,
        types=TYPES,
        bounds=BOUNDS,
        keys=KEYS,
        max_groups=LIMITS.groups,
        max_rows=LIMITS.rows,
        version="demo",
    )


def conversation(curator: Curator) -> Iterator[DemoReply]:
    """Yields every line with what comes back, as it happens."""
    for line in LINES:
        question = line.build(curator) if line.build else line.text
        try:
            yield DemoReply(line=line, answer=curator.ask(question, epsilon=line.epsilon, limits=line.limits))
        except DiscreetError as error:
            yield DemoReply(line=line, refusal=error)
