"""An answer: rows of released values with their intervals, what they cost, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.catalog.data_versions import UNDESCRIBED, DataDescription
from discreet.curator.replay.stored_releases import MeasurementResult
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.lazy import Module, load, pa
from discreet.ledger import RemainingBudget
from discreet.ledger.acts.table_versions import TableVersion
from discreet.ledger.cost import Cost
from discreet.measurement.aggregates import aggregation
from discreet.measurement.population.population_statistics import as_covered
from discreet.measurement.probes.probes import Schemas
from discreet.measurement.profile.coverage import Coverage, complete_rows, coverage
from discreet.measurement.profile.profile import Profile
from discreet.measurement.program.execution import TOTAL, ReleasedStatistics, note_on_limits, notes
from discreet.measurement.program.program import Program
from discreet.plan.model.group_columns import ColumnarRows
from discreet.plan.model.nodes import columns
from discreet.plan.model.sample import NOISE, POPULATION
from discreet.plan.post.outputs import Cell, NoisyNumber, plain_rows
from discreet.plan.post.steps import answer_columns
from discreet.privacy.events import Event
from discreet.progress import stage
from discreet.report import answers
from discreet.report.charts import Spec
from discreet.report.display import Display, DisplayMixin, percent, rate
from discreet.report.html import element

if TYPE_CHECKING:
    from discreet.report import page, render
else:  # which draw charts and pages
    page, render = Module("discreet.report.page"), Module("discreet.report.render")

COMPLETED = (
    "Numbers include an estimate of what limits, bounds and missing ids leave out, as far as the profile and declared "
    "facts show it."
)
UNPROFILED = (
    "How much limits and bounds leave out is unknown. To measure it, buy a profile (curator.profile, or discreet "
    "profile)."
)
UNMEASURED = "How much limits and bounds leave out is unknown."
_ABOUT = {NOISE: "what was counted", POPULATION: "the population"}
_LARGEST = (1 << 63) - 1  # of the integers that every frame can hold


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer(DisplayMixin):
    """The answer that an analyst gets.

    Every released number `x` comes with `x_low` and `x_high`, an interval of the stated confidence that includes the
    noise and what rounding to public grids can have moved.

    Attributes:
        columns: the names of all columns, intervals included.
        records: rows as dictionaries, intervals included; they are held as columns.
        cost: what was charged; nothing if it was replayed.
        remaining: what the account can still spend.
        event: what was released.
        replayed: whether a stored answer was given again, for free.
        notes: what limits and bounds mean for these numbers; functions of public facts only.
        confidence: of each interval.
        private: False if the noise was seeded, for tests.
        interval: what each interval covers: "noise", or "population" if that of drawing a sample is added.
        released: the noisy statistics that the rows were computed from.
        raw: of an adjusted answer, the one before.
        whole: the columns whose intervals are about the whole table; all others are about what was counted.
        coverage: what limits and bounds leave out of each column, by a profile of the table; None without one, or where
            it does not describe the rows.
        counted: how many rows of one person count, and which part of all rows that is, if a profile knows.
        versions: which version of its tables' data it is about, and since when; empty if a steward declared none.
        totals: for each row the keys that its grouping leaves out, by ROLLUP, CUBE or GROUPING SETS; they are None, as
            NULL is, and printed as (all). Empty if there is one grouping.
    """

    columns: tuple[str, ...]
    records: Sequence[dict[str, Any]]
    cost: Cost
    remaining: RemainingBudget
    event: Event
    replayed: bool
    notes: tuple[str, ...]
    confidence: Fraction
    private: bool
    interval: str = NOISE
    released: ReleasedStatistics | None = field(default=None, repr=False)
    raw: Answer | None = field(default=None, repr=False)
    whole: frozenset[str] = frozenset()
    coverage: Mapping[str, Coverage] | None = None
    totals: tuple[frozenset[str], ...] = ()
    counted: str = ""
    versions: tuple[TableVersion, ...] = ()

    def __repr__(self) -> str:
        counted = f"{len(self.records)} row{'' if len(self.records) == 1 else 's'} of {', '.join(self.columns)}"
        return f"Answer({counted}; {'replayed' if self.replayed else self.cost})"

    @classmethod
    def of(
        cls,
        result: MeasurementResult,
        confidence: Fraction,
        remaining: RemainingBudget,
        *,
        cost: Cost | None = None,
        profile: Profile | None = None,
        schemas: Schemas | None = None,
        interval: str = NOISE,
        data: DataDescription = UNDESCRIBED,
    ) -> Answer:
        """Returns the answer that a result is; one that cost nothing now was replayed.

        Args:
            result: what was released.
            confidence: of each interval.
            remaining: what the account can still spend.
            cost: what was charged.
            profile: of the table.
            schemas: the declared tables, with the bounds that were found.
            interval: what intervals cover.
            data: what it says about the data of its tables.
        """
        stage("Working out intervals")
        program, more = result.released.program, frozenset[str]()
        released, sampled = result.released, tuple[str, ...]()
        if interval == POPULATION or any(table.sample is not None for table in (schemas or {}).values()):
            released, sampled = as_covered(released, schemas or {}, interval)
        rows: Sequence[dict[str, Cell]] = released.rows(confidence)
        if profile is not None and interval == NOISE:
            rows, more = complete_rows(result.released, profile, confidence, rows)
        unknown = profile is None and not {one.name for one in program.question.aggregates} <= program.whole
        dated = any(table.period is not None for table in (schemas or {}).values())  # no profile can be bought then
        left_out = [UNMEASURED if dated else UNPROFILED] if unknown else []
        own = (*notes(program), *left_out, *result.facts.remarks)
        covered = None if profile is None else coverage(program, profile, confidence)
        return cls(
            columns=answer_columns(program.question),
            records=plain_rows(rows),
            cost=Cost.free(remaining.loss) if cost is None else cost,
            remaining=remaining,
            event=result.event,
            replayed=cost is None,
            notes=(*sampled, *own, *result.released.notes, *([COMPLETED] if more else []), *data.notes),
            confidence=confidence,
            private=result.private,
            interval=interval,
            released=released.without_salt,
            whole=whole(program) | more if interval == NOISE else frozenset(),
            coverage=covered,
            counted=_counted(program, covered),
            totals=tuple(result.released.totals(confidence)),
            versions=data.versions,
        )

    @property
    def scope(self) -> str:
        """Returns what the intervals are about: the "whole table", or "what was counted" within limits and bounds.

        Or the "population" of which the table is a sample.
        """
        if self.interval == POPULATION:
            return POPULATION
        return "whole table" if set(answers.AnswerShape.of(self.columns).numbers) <= self.whole else "what was counted"

    @property
    def scope_facts(self) -> dict[str, str]:
        """Returns what its intervals cover, and which versions of tables it is about, by labels."""
        return {"Intervals cover": self.scope, **self.version_facts}

    @property
    def version_facts(self) -> dict[str, str]:
        """Returns a line that says which versions of tables it is about, by its label; none without a version."""
        return {"Data version": "; ".join(map(str, self.versions))} if self.versions else {}

    @property
    def _about(self) -> str:
        """Returns what intervals are about, and which columns are about the whole table where not all of them are."""
        some = [name for name in answers.AnswerShape.of(self.columns).numbers if name in self.whole]
        more = f"; of {', '.join(some)}: whole table" if some and self.scope != "whole table" else ""
        return f"{self.scope}{more}"

    @property
    def descriptions(self) -> dict[str, str]:
        """Returns for each number what it is: its interval, what that is about, and what it leaves out."""
        told = {}
        for name in answers.AnswerShape.of(self.columns).numbers:
            about = "the whole table" if name in self.whole else _ABOUT[self.interval]
            more = f"; {self.coverage[name]}" if self.coverage is not None and name in self.coverage else ""
            told[name] = f"released with a {percent(self.confidence)} interval for {about}{more}"
        return told

    def adjusted(self, *, consistent: bool = True, nonnegative: bool = True) -> Answer:
        """Returns the same answer with numbers that fit each other; the answer as it was released stays in its `raw`.

        Args:
            consistent: makes totals of ROLLUP, CUBE and GROUPING SETS the sums of their parts.
            nonnegative: holds counts, and sums of what is not negative, to zero.

        Raises:
            InvalidParameter: if groups do not add up to totals: where people own rows, and where groups are private.
        """
        if self.interval == POPULATION:
            hint = Hint("Ask again with {interval:noise}, which is free, and adjust that answer.")
            raise InvalidParameter("interval", self.interval, "to be noise", hint)
        if self.released is None:
            raise InvalidParameter("answer", "this one", "to come from a curator", "Use what curator.ask returned.")
        fitting = AdjustedStatistics(self.released, consistent=consistent, nonnegative=nonnegative)
        return replace(
            self,
            records=plain_rows(fitting.rows(self.confidence)),
            notes=(*self.notes, "Numbers were adjusted after release to agree with each other; see raw."),
            released=fitting,
            raw=self.raw or self,
            totals=tuple(fitting.totals(self.confidence)),
        )

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.records[index]

    def to_arrow(self) -> Any:
        """Returns the rows as a pyarrow table; the metadata of each number describe what its interval is about."""
        made, told = pa.table(self._by_column()), self.descriptions
        fields = [f.with_metadata({"description": told[f.name]}) if f.name in told else f for f in made.schema]
        return made.cast(pa.schema(fields))

    def to_pandas(self) -> Any:
        """Returns the rows as a pandas frame.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        return load("pandas", "A pandas frame").DataFrame(self._by_column())

    def to_polars(self) -> Any:
        """Returns the rows as a polars frame.

        Raises:
            MissingExtra: if polars is not installed.
        """
        return load("polars", "A polars frame").DataFrame(self._by_column())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def chart(self) -> Any:
        """Draws the released numbers with their intervals, by group; above each, what its coverage says is left out.

        Returns:
            An Altair chart; without Altair, the same chart as a dictionary of Vega-Lite.
        """
        return render.chart(self.spec(self._printed_rows))

    def spec(self, records: Sequence[dict[str, Any]]) -> Spec:
        """Returns the chart of some of its rows as Vega-Lite, with what intervals cover below it."""
        remarks = {name: str(found) for name, found in (self.coverage or {}).items()}
        return answers.spec(records, remarks=remarks, caption=answers.caption(self.confidence, self.interval))

    def _repr_html_(self) -> str:
        caption = f"Released numbers with {percent(self.confidence)} intervals"
        cost = "Free: a stored answer, replayed." if self.replayed else f"Cost: {self.cost}."
        warning = [] if self.private else [element("strong", "Not private: the noise was seeded, for tests.")]
        return element(
            "div",
            *([page.paragraph(self.counted)] if self.counted else []),
            answers.table(self._printed_rows, caption=caption),
            *warning,
            page.paragraph(f"{cost} Remaining: {self.remaining}. Intervals cover: {self._about}."),
            *(page.paragraph(f"{label}: {told}.") for label, told in self.version_facts.items()),
            *(page.paragraph(f"{name}: {found}.") for name, found in (self.coverage or {}).items()),
            page.bullets(*self._other_notes),
        )

    def _display(self) -> Display:
        names, numbers = (shape := answers.AnswerShape.of(self.columns)).names, shape.numbers
        heads = [f"{name} ({percent(self.confidence)} interval)" if name in numbers else name for name in names]
        seeded = "" if self.private else "NOT PRIVATE: the noise was seeded, for tests."
        counted = self.counted
        return Display(
            title=" ".join(
                filter(None, [seeded, counted, "" if self.records else "No group was large enough to be shown."])
            ),
            columns=heads,
            rows=[[answers.cell(record, name) for name in names] for record in self._printed_rows],
            numbers=[head for head, name in zip(heads, names, strict=True) if name in numbers],
            facts={
                **({"Replayed": "a stored answer, free"} if self.replayed else {"Cost": str(self.cost)}),
                "Remaining": str(self.remaining),
                "Intervals cover": self._about,
                **self.version_facts,
                **{f"Coverage of {name}": str(found) for name, found in (self.coverage or {}).items()},
            },
            notes=self._other_notes,
        )

    @property
    def _other_notes(self) -> tuple[str, ...]:
        """Returns the notes without what the first line says."""
        return tuple(note for note in self.notes if not self.counted.startswith(note))

    @property
    def _printed_rows(self) -> list[dict[str, Any]]:
        """Returns the rows with totals marked, so that they differ from groups of NULL."""
        totals = self.totals or (frozenset[str](),) * len(self.records)
        return [record | dict.fromkeys(left, TOTAL) for record, left in zip(self.records, totals, strict=True)]

    def _by_column(self) -> dict[str, Any]:
        held = ColumnarRows.of(self.records).columns
        return {name: _alike(held[name]) if self.records else [] for name in self.columns}


def _counted(program: Program, coverage: Mapping[str, Coverage] | None) -> str:
    """Returns how many rows of one person count, and which part of all rows that is, if a profile knows."""
    told, known = note_on_limits(program), (coverage or {}).values()
    if not told:
        return ""
    left = next((one for one in known if one.share is not None), None)
    if left is None or left.share is None or left.high >= 1:  # of people with any number of rows nothing is known
        return told
    return f"{told} They are {rate(1 - left.share)} ({rate(1 - left.high)} to {rate(1 - left.low)}) of all rows."


def whole(program: Program) -> frozenset[str]:
    """Returns the outputs whose intervals are about the whole table: nothing they are made of leaves anything out."""
    if program.question.steps or program.beside:
        return frozenset()
    named = {aggregate.name for aggregate in program.question.aggregates}
    used = {o.name: named & {c.name for c in columns(o.expression)} for o in program.question.outputs}
    return frozenset(name for name, aggregates in used.items() if aggregates <= program.whole)


def _alike(values: Any) -> Any:
    """Returns numbers of one kind: floats if one is a float or does not fit into 64 bits. Arrays stay as they are."""
    if isinstance(values, np.ndarray):
        return values
    kinds = set(map(type, values))
    if not kinds & {int, float} or (kinds == {int} and min(values) >= -_LARGEST and max(values) <= _LARGEST):
        return list(values)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if all(isinstance(value, int) and abs(value) <= _LARGEST for value in numbers):
        return list(values)
    return [float(value) if isinstance(value, int) else value for value in values]


# ---------------------------------------------------------------------------------------------------------- adjustment
#
# Numbers that fit each other, on request: totals that are the sums of their parts, counts that are not negative.
# Post-processing: it costs nothing, and the raw values stay with it. Adjusted values are nearer to the truth on the
# whole, but they are no longer unbiased one by one.

MOST_ROWS = 5000  # that are made to fit each other
Floats = NDArray[np.float64]


class AdjustedStatistics(ReleasedStatistics):
    """A release whose numbers were made to fit; intervals are those of the raw values, cut where they are impossible.

    Args:
        raw: what was released.
        consistent: whether totals of several groupings are made the sums of their parts. Of all such numbers those
            nearest to the released ones are taken (least squares, which is best for noise of one scale; Hay, Rastogi,
            Miklau, Suciu 2010).
        nonnegative: whether counts, and sums of what is not negative, are held to zero.

    Raises:
        InvalidParameter: if sums of groups are no totals, because people count in each grouping by themselves or
            because some groups are hidden, or if there are too many rows.
    """

    def __init__(self, raw: ReleasedStatistics, *, consistent: bool, nonnegative: bool) -> None:
        super().__init__(raw.program, raw.key_rows, raw.noisy, raw.beside)
        self._raw, self._nonnegative = raw, nonnegative
        apart = raw.program.question.sets and raw.program.tables is None
        self._fit = _fitting(raw) if consistent and apart else None

    def groups(self, outside: Fraction) -> ColumnarRows[Cell]:
        """Returns keys and adjusted aggregates of each group; see `ReleasedStatistics.groups`."""
        rows = self._raw.groups(outside)
        found = dict(rows.columns)
        for aggregate in self.program.question.aggregates:
            total = self.program.estimators[aggregate.name].total
            if total is None:
                continue
            cells = [cell for cell in found[aggregate.name] if isinstance(cell, NoisyNumber)]
            if self._fit is not None and aggregation(aggregate.kind).adds_up(2):
                cells = _fit_cells(cells, self._fit)
            if self._nonnegative and total.positive:
                cells = [_clip_cell(cell) for cell in cells]
            found[aggregate.name] = cells
        return ColumnarRows(found, len(rows))


def _clip_cell(cell: NoisyNumber) -> NoisyNumber:
    value = None if cell.value is None else max(cell.value, 0)
    return NoisyNumber(value, max(cell.low, 0), max(cell.high, 0))


def _fit_cells(cells: Sequence[NoisyNumber], fit: Floats) -> list[NoisyNumber]:
    values = fit @ np.array([float(cell.value or 0) for cell in cells])
    found = []
    for cell, value in zip(cells, values.tolist(), strict=True):
        near = min(max(Fraction(value), Fraction(cell.low)), Fraction(cell.high))
        found.append(NoisyNumber(round(near) if isinstance(cell.value, int) else near, cell.low, cell.high))
    return found


def _fitting(raw: ReleasedStatistics) -> Floats:
    """Returns the projection on numbers whose totals are sums of their parts."""
    if raw.program.reading.bounding is not None:
        hint = "Here people count in each grouping separately, so parts do not add up to totals. Pass consistent=False."
        raise InvalidParameter("consistent", True, "only where each row is one unit", hint)
    if any(one.selection is not None for one in raw.program.groupings):
        hint = "Some parts may be missing. Declare the keys, or pass consistent=False."
        raise InvalidParameter("consistent", True, "only for public groups", hint)
    if len(raw.keys) > MOST_ROWS:
        raise InvalidParameter("consistent", True, f"for at most {MOST_ROWS} rows", "Ask for fewer groupings.")
    demands = [row for coarse, fine in _levels(raw) for row in _demand(raw, coarse, fine)]
    rows = np.array(demands, dtype=np.float64).reshape(-1, len(raw.keys))
    whole: Floats = np.eye(len(raw.keys)) - np.linalg.pinv(rows) @ rows
    return whole


def _levels(raw: ReleasedStatistics) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Returns each grouping with those that are the next finer."""
    sets = raw.program.question.sets
    pairs = [(one, other) for one, other in permutations(sets, 2) if set(one) < set(other)]
    return [(a, b) for a, b in pairs if not any(set(a) < set(c) < set(b) for c in sets)]


def _demand(raw: ReleasedStatistics, coarse: tuple[int, ...], fine: tuple[int, ...]) -> list[list[int]]:
    """Returns for each total one row: itself less its parts."""
    found = []
    for total in _places(raw, coarse):
        row = [0] * len(raw.keys)
        row[total] = 1
        for part in _places(raw, fine):
            if all(raw.keys[part][key] == raw.keys[total][key] for key in coarse):
                row[part] = -1
        found.append(row)
    return found


def _places(raw: ReleasedStatistics, grouping: tuple[int, ...]) -> list[int]:
    count = len(raw.program.question.keys)
    absent = tuple(int(place not in grouping) for place in range(count))
    return [place for place, key in enumerate(raw.keys) if key[count:] == absent]
