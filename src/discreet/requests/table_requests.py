"""Requests about tables: profiles, learners, synthetic tables, and streams of totals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.plan.model.schema import Limits
from discreet.requests.question_requests import Delta
from discreet.requests.request import Arg, ArgumentKind, Request

if TYPE_CHECKING:  # bases of requests name results, which ruff does not see
    from discreet.curator.streams.curated_stream import CuratedStream  # noqa: F401
    from discreet.curator.synthesis.synthesizer import SynthesisPrice, SyntheticTable, SyntheticTables  # noqa: F401
    from discreet.curator.training.trainer import FitPlan  # noqa: F401
    from discreet.measurement.profile.profile import Profile  # noqa: F401

_HERE = frozenset({"python", "cli"})
_NOT_ON_PAGE = frozenset({"python", "cli", "http"})
_LEARNED = frozenset({"python", "http"})


@dataclass(frozen=True, kw_only=True)
class BuyProfile(Request["Profile"]):
    """Buy a profile of a table: people, rows and groups per person, and what limits and bounds leave out."""

    verb: ClassVar[str] = "profile"
    table: Annotated[str, Arg(ArgumentKind.NAME, "A protected table.", example="visits")]
    epsilon: Annotated[
        Fraction, Arg(ArgumentKind.AMOUNT, "What the profile may cost, e.g. 0.05.", example="0.05", spends=True)
    ]
    columns: Annotated[
        tuple[str, ...] | None,
        Arg(
            ArgumentKind.NAME,
            "Columns whose clipped and missing values are counted. Default: all with bounds.",
            many=True,
            option="column",
        ),
    ] = None
    by: Annotated[
        tuple[tuple[str, ...], ...] | None,
        Arg(ArgumentKind.NAMES, "Columns by which people's groups are counted. Default: all with keys.", many=True),
    ] = None


Learner = Annotated[Any, Arg(ArgumentKind.LEARNER, "A learner of discreet.learn.", faces=_LEARNED)]
TrainingRows = Annotated[str, Arg(ArgumentKind.SQL, "One SELECT of the columns to learn from.", faces=_LEARNED)]
Target = Annotated[str | None, Arg(ArgumentKind.NAME, "The column to learn.", faces=_LEARNED)]
Price = Annotated[
    Fraction | None,
    Arg(
        ArgumentKind.AMOUNT,
        "What the model may cost. Default: the learner's own epsilon.",
        example="1",
        spends=True,
        faces=_LEARNED,
    ),
]
RowsPerUnit = Annotated[
    int, Arg(ArgumentKind.COUNT, "The most rows of one unit that count.", most=10**6, faces=_NOT_ON_PAGE)
]


@dataclass(frozen=True, kw_only=True)
class Fit(Request[Any]):
    """Train a private learner on the rows of one SELECT, and pay for it."""

    verb: ClassVar[str] = "fit"
    estimator: Learner
    sql: TrainingRows
    target: Target = None
    epsilon: Price = None
    rows_per_unit: RowsPerUnit = 1


@dataclass(frozen=True, kw_only=True)
class PlanFit(Request["FitPlan"]):
    """Show what a fit would release and cost. Reads no data and spends nothing."""

    verb: ClassVar[str] = "plan_fit"
    estimator: Learner
    sql: TrainingRows
    target: Target = None
    epsilon: Price = None
    rows_per_unit: RowsPerUnit = 1


Source = Annotated[str, Arg(ArgumentKind.SQL, "A protected table, or one SELECT of its columns.", example="visits")]
Cost = Annotated[
    Fraction | None,
    Arg(ArgumentKind.AMOUNT, "What the table may cost; kept exactly, e.g. 1 or 1/3.", example="1", spends=True),
]
Generator = Annotated[
    Any,
    Arg(
        ArgumentKind.GENERATOR, "aim, mst, allpairs or independent.", choices=("aim", "mst", "allpairs", "independent")
    ),
]
Bins = Annotated[int | None, Arg(ArgumentKind.COUNT, "The number of bins between declared bounds. Default: 16.")]
WithinBins = Annotated[
    str,
    Arg(
        ArgumentKind.NAME,
        "How numbers are placed within bins: uniform, or histogram for a tenth of the budget.",
        choices=("uniform", "histogram"),
    ),
]
Made = Annotated[
    int | None, Arg(ArgumentKind.COUNT, "The number of rows to make. Default: about as many as there are.", most=10**9)
]
Domain = Annotated[Any, Arg(ArgumentKind.DOMAIN, "Public values of columns.", faces=_NOT_ON_PAGE)]
Domains = Annotated[Any, Arg(ArgumentKind.DOMAINS, "Public values of columns, by table.", faces=_NOT_ON_PAGE)]
Forbidden = Annotated[
    Any, Arg(ArgumentKind.RULES, "Combinations of values that cannot occur.", faces=frozenset({"python", "http"}))
]
People = Annotated[
    str, Arg(ArgumentKind.SQL, "The table with one row per person, or one SELECT of it.", example="people")
]
Events = Annotated[
    str,
    Arg(
        ArgumentKind.SQL,
        "A table of events of the same people, synthesized with them for one charge.",
        example="visits",
    ),
]
EventsPerUnit = Annotated[
    int | None,
    Arg(
        ArgumentKind.COUNT,
        "The most rows of one unit that count. Default: 1; for events, the declared limit.",
        most=10**6,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Synthesize(Request["SyntheticTable"]):
    """Make a synthetic table like a protected one, to share. The same request again comes from the ledger for free."""

    verb: ClassVar[str] = "synthesize"
    table: Source
    epsilon: Cost = None
    delta: Delta = None
    rows: Made = None
    generator: Generator = "aim"
    domain: Domain = None
    forbidden: Forbidden = ()
    bins: Bins = None
    within: WithinBins = "uniform"
    rows_per_unit: RowsPerUnit = 1


@dataclass(frozen=True, kw_only=True)
class SynthesizeTables(Request["SyntheticTables"]):
    """Make synthetic people and their events, linked by a synthetic key. The same request again is free."""

    verb: ClassVar[str] = "synthesize_tables"
    people: People
    events: Events
    epsilon: Cost = None
    delta: Delta = None
    rows: Made = None
    generator: Generator = "aim"
    domain: Domains = None
    forbidden: Forbidden = None
    bins: Bins = None
    within: WithinBins = "uniform"
    rows_per_unit: EventsPerUnit = None


@dataclass(frozen=True, kw_only=True)
class PlanSynthesize(Request["SynthesisPrice"]):
    """Show what a synthetic table would release and cost. Reads no data and spends nothing."""

    verb: ClassVar[str] = "plan_synthesize"
    table: Source
    epsilon: Cost = None
    delta: Delta = None
    generator: Generator = "aim"
    domain: Domain = None
    forbidden: Forbidden = ()
    bins: Bins = None
    within: WithinBins = "uniform"
    rows_per_unit: RowsPerUnit = 1


@dataclass(frozen=True, kw_only=True)
class PlanSynthesizeTables(Request["SynthesisPrice"]):
    """Show what two linked synthetic tables would release and cost. Reads no data and spends nothing."""

    verb: ClassVar[str] = "plan_synthesize_tables"
    people: People
    events: Events
    epsilon: Cost = None
    delta: Delta = None
    generator: Generator = "aim"
    domain: Domains = None
    forbidden: Forbidden = None
    bins: Bins = None
    within: WithinBins = "uniform"
    rows_per_unit: EventsPerUnit = None


@dataclass(frozen=True, kw_only=True)
class OpenStream(Request["CuratedStream"]):
    """Start a stream and pay for all of it, or open one that was started; the same again changes nothing."""

    verb: ClassVar[str] = "stream"
    sql: Annotated[
        str | None, Arg(ArgumentKind.SQL, "One SELECT of a COUNT or SUM, grouped by a period.", faces=_HERE)
    ] = None
    every: Annotated[
        str | int,
        Arg(ArgumentKind.VALUE, "The length of a period: day, week, month, quarter, year, or a number.", faces=_HERE),
    ] = "day"
    horizon: Annotated[
        int | None, Arg(ArgumentKind.COUNT, "The number of periods. Leave it out if it is unknown.", faces=_HERE)
    ] = None
    epsilon: Annotated[
        Fraction | None,
        Arg(ArgumentKind.AMOUNT, "What the whole stream may cost; kept exactly.", faces=_HERE, example="1"),
    ] = None
    delta: Delta = None
    rho: Annotated[Fraction | None, Arg(ArgumentKind.AMOUNT, "Instead of epsilon and delta.", faces=_HERE)] = None
    start: Annotated[
        Any, Arg(ArgumentKind.VALUE, "The first day, e.g. 2026-01-01, or the first number.", faces=_HERE)
    ] = None
    window: Annotated[
        int | None,
        Arg(ArgumentKind.COUNT, "The number of periods that a sum covers. Default: all so far.", faces=_HERE),
    ] = None
    periods: Annotated[
        int | None,
        Arg(ArgumentKind.COUNT, "The most periods of the whole stream in which one unit may count.", faces=_HERE),
    ] = None
    limits: Annotated[
        Limits | None, Arg(ArgumentKind.LIMITS, "Contribution limits within one period.", faces=_HERE)
    ] = None
    name: Annotated[str | None, Arg(ArgumentKind.NAME, "The name of the stream.", faces=_HERE)] = None
    confidence: Annotated[Fraction, Arg(ArgumentKind.SHARE, "The confidence of each interval.", faces=_HERE)] = (
        CONFIDENCE
    )
    state: Annotated[
        str | None,
        Arg(
            ArgumentKind.NAME,
            "The file of the private state. Default: next to the ledger; required if that is on a server.",
            faces=_HERE,
        ),
    ] = None
    reserve: Annotated[
        str | None, Arg(ArgumentKind.NAME, "Pay from the amount that is set aside for this purpose.", faces=_HERE)
    ] = None

    def check(self) -> None:
        """Refuses a stream that has neither a query nor a name alone."""
        if self.sql is not None:
            return
        others = replace(self, name=None, confidence=CONFIDENCE, state=None)
        if self.name is None or others != OpenStream():
            raise InvalidParameter("sql", None, "to be given", "Pass a SELECT, or the name of a stream alone.")
