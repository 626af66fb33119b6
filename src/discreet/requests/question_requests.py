"""Requests about queries: asking and paying, one or several, and all that is known before a query is asked."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from discreet.dataclass import dataclass
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.plan.model.nodes import Question, Value
from discreet.plan.model.sample import INTERVALS, NOISE
from discreet.plan.model.schema import Limits
from discreet.privacy import ApproxDP, PureDP
from discreet.requests.request import CANDIDATES, Arg, ArgumentKind, Request

if TYPE_CHECKING:  # bases of requests name results, which ruff does not see
    from discreet.curator.asking.answer import Answer  # noqa: F401
    from discreet.curator.asking.choices import Choices  # noqa: F401
    from discreet.curator.asking.explanation import Explanation  # noqa: F401

IMAGINED = 1000
"""Rows of an imagined group."""

_PRICE = "What the answer may cost; kept exactly, e.g. 0.2 or 1/3."
_NOT_ON_PAGE = frozenset({"python", "cli", "http"})
_WRITTEN = _NOT_ON_PAGE | {"wire"}

Sql = Annotated[str | Question, Arg(ArgumentKind.SQL, "One SELECT.", example="SELECT COUNT(*) AS n FROM visits")]
Parameters = Annotated[
    Any,
    Arg(
        ArgumentKind.VALUES,
        "The values of ? and $1 by number, of :name and $name by name.",
        faces=_NOT_ON_PAGE,
        option="parameter",
    ),
]
Epsilon = Annotated[Fraction | None, Arg(ArgumentKind.AMOUNT, _PRICE, example="0.1", spends=True)]
Delta = Annotated[
    Fraction | None, Arg(ArgumentKind.DELTA, "Needed for private groups; default: a hundredth of the account's.")
]
Contribution = Annotated[
    Limits | Literal["choose"] | None,
    Arg(ArgumentKind.LIMITS, "Contribution limits of this question, instead of the table's.", faces=_NOT_ON_PAGE),
]
Other = Annotated[
    Value,
    Arg(ArgumentKind.VALUE, "The label of one more group, with all rows outside the shown groups.", faces=_NOT_ON_PAGE),
]
Confidence = Annotated[Fraction, Arg(ArgumentKind.SHARE, "The confidence of each interval.", faces=_WRITTEN)]
Interval = Annotated[
    str,
    Arg(
        ArgumentKind.NAME,
        "What intervals cover: noise, or also the sampling of the population, where the table is declared a sample.",
        choices=INTERVALS,
    ),
]
Within = Annotated[
    Fraction | None,
    Arg(
        ArgumentKind.AMOUNT,
        "The largest error of each number, instead of {epsilon}.",
        faces=_WRITTEN,
    ),
]
MaxEpsilon = Annotated[
    Fraction | None,
    Arg(
        ArgumentKind.AMOUNT,
        "The most that {within} may cost.",
        faces=_WRITTEN,
        spends=True,
    ),
]
Reserve = Annotated[
    str | None, Arg(ArgumentKind.NAME, "Pay from the amount that is set aside for this purpose.", faces=_NOT_ON_PAGE)
]
Rows = Annotated[
    int,
    Arg(
        ArgumentKind.COUNT,
        "Assumed rows per group, which decide the error of a mean.",
        most=10**18,
        faces=_NOT_ON_PAGE | {"page"},
    ),
]


@dataclass(frozen=True, kw_only=True)
class Ask(Request["Answer"]):
    """Run a query and pay for it. The same query again is answered from the ledger for free."""

    verb: ClassVar[str] = "ask"
    sql: Sql
    parameters: Parameters = None
    epsilon: Epsilon = None
    delta: Delta = None
    limits: Contribution = None
    other: Other = None
    confidence: Confidence = CONFIDENCE
    interval: Interval = NOISE
    within: Within = None
    max_epsilon: MaxEpsilon = None
    profile: Annotated[
        Fraction | None,
        Arg(
            ArgumentKind.AMOUNT,
            "Also buy a profile of the table, for this epsilon.",
            faces=_NOT_ON_PAGE,
            spends=True,
        ),
    ] = None
    coverage: Annotated[
        Fraction | None,
        Arg(
            ArgumentKind.SHARE,
            "The share of epsilon that measures what limits leave out of this question.",
            faces=_NOT_ON_PAGE,
        ),
    ] = None
    reserve: Reserve = None


@dataclass(frozen=True, kw_only=True)
class AskMany(Request["list[Answer]"]):
    """Run several queries for one charge. All of them are answered, or none."""

    verb: ClassVar[str] = "ask_many"
    questions: Annotated[
        tuple[str | Question, ...],
        Arg(ArgumentKind.SQL, "Several SELECTs that share the epsilon of one charge.", many=True, most=200),
    ]
    epsilon: Annotated[
        Fraction, Arg(ArgumentKind.AMOUNT, "What all answers may cost together.", example="1", spends=True)
    ]
    delta: Delta = None
    limits: Contribution = None
    confidence: Confidence = CONFIDENCE
    interval: Interval = NOISE


@dataclass(frozen=True, kw_only=True)
class Explain(Request["Explanation"]):
    """Show the cost of a query and the error of its answer. Reads no data and spends nothing."""

    verb: ClassVar[str] = "explain"
    sql: Sql
    parameters: Parameters = None
    epsilon: Epsilon = None
    delta: Delta = None
    limits: Contribution = None
    other: Other = None
    confidence: Confidence = CONFIDENCE
    interval: Interval = NOISE
    rows: Rows = IMAGINED
    within: Within = None
    max_epsilon: MaxEpsilon = None


@dataclass(frozen=True, kw_only=True)
class Rehearse(Request["Answer"]):
    """Show the shape of an answer on synthetic rows. Reads no data and spends nothing."""

    verb: ClassVar[str] = "rehearse"
    sql: Sql
    parameters: Parameters = None
    epsilon: Annotated[Fraction, Arg(ArgumentKind.AMOUNT, _PRICE, example="0.1")] = Fraction(1)
    delta: Delta = None
    limits: Contribution = None
    other: Other = None
    confidence: Confidence = CONFIDENCE
    rows: Annotated[int, Arg(ArgumentKind.COUNT, "The number of synthetic rows.", most=10**6, faces=_NOT_ON_PAGE)] = (
        IMAGINED
    )


@dataclass(frozen=True, kw_only=True)
class ChooseEpsilon(Request["Choices"]):
    """Compare budgets: the error of an answer, what an attacker could learn. Reads no data and spends nothing."""

    verb: ClassVar[str] = "choose_epsilon"
    sql: Sql
    candidates: Annotated[
        tuple[Fraction | PureDP | ApproxDP, ...],
        Arg(ArgumentKind.PRICE, "Epsilons to compare.", many=True, most=50, example="0.1", option="epsilon"),
    ] = CANDIDATES
    parameters: Parameters = None
    delta: Delta = None
    limits: Contribution = None
    other: Other = None
    confidence: Confidence = CONFIDENCE
    rows: Rows = IMAGINED
