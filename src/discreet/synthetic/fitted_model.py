"""A fitted model of a table: rows are drawn from it for free, and it is kept as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import load
from discreet.noise import Bits, SeededBits, source_of
from discreet.noise.experiment import uniforms
from discreet.privacy import ApproxDP, Neighbours, events
from discreet.privacy.events import Event
from discreet.synthetic.coded_rows import Integers
from discreet.synthetic.domain import Domain, FrameKind
from discreet.synthetic.inference.calibrated_tree import CalibratedTree
from discreet.synthetic.inference.estimation import model_of
from discreet.synthetic.inference.factors import Attributes, Factor, Table
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal
from discreet.synthetic.inference.row_sampler import sample_rows
from discreet.synthetic.merged_values import Merge, merged_zeros

FORMAT = "discreet synthetic model 2"
_FIRST = "discreet synthetic model 1"  # did not keep marginals whose values were merged afterwards


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """Holds what a generator learned of a table, all of it released: sampling from it is free, any number of times.

    Attributes:
        generator: the name of the generator.
        domain: the public domain.
        event: what was released, for accounting under `neighbours`.
        rho: the budget of zCDP that the charges add up to.
        charges: what was looked at, and what was paid for it, in order.
        neighbours: the relation.
        rows_per_unit: how many rows of one unit were kept at most.
        measurements: the noisy marginals, over merged values where values were merged.
        promise: the (epsilon, delta) that the generator keeps to; None of a text of the first version.
        unmerged: noisy marginals as they were released, of columns whose values were merged by what they said.
        rows: the private estimate of the number of rows, at least 1, or the number that was given; with a limit on
            rows per unit it is about those that were kept.
        kind: the library of the frame that was fitted, and of samples.
        merges: values that are one in the model.
        private: False if the noise was seeded.
        law: the probabilities of rows.
        potentials: what the law is made of.

    >>> from discreet.synthetic import MST
    >>> frame = {"sex": ["f", "m"] * 1000, "smoker": [False, True] * 1000}
    >>> domain = {"sex": ["f", "m"], "smoker": [False, True]}
    >>> model = MST(epsilon=3, delta=1e-9, random_state=1).fit(frame, domain=domain)
    >>> print(model)
    MST of 2 columns, about 2,002 rows, 3 marginals; seeded, not private
    >>> model.counts(("sex", "smoker")).round().astype(int).tolist()  # missing values have a row and a column
    [[992, 4, 1], [4, 990, 6], [2, 2, 0]]
    >>> Model.from_json(model.to_json()).sample(4, random_state=1)
    {'sex': ['f', 'm', 'm', 'f'], 'smoker': [False, True, True, False]}
    """

    generator: str
    domain: Domain
    event: Event
    rho: Fraction
    charges: tuple[tuple[tuple[str, ...], Fraction], ...] = field(repr=False)
    neighbours: Neighbours
    rows_per_unit: int
    measurements: tuple[NoisyMarginal, ...] = field(repr=False)
    rows: int
    kind: FrameKind
    merges: Mapping[str, Merge] = field(repr=False)
    private: bool
    law: CalibratedTree = field(repr=False)
    potentials: tuple[Factor, ...] = field(repr=False)
    promise: ApproxDP | None = None
    unmerged: tuple[NoisyMarginal, ...] = field(default=(), repr=False)

    def sample(self, rows: int | None = None, *, random_state: int | None = None) -> Any:
        """Returns synthetic rows, as a frame of the kind that was fitted.

        Numbers and days get their places within bins back: `domain.details` says how for each column.

        Args:
            rows: how many; None is the private estimate of how many there were.
            random_state: a seed that repeats the sample; the model is released, so the draws need no privacy.
        """
        bits = sampling_bits(random_state)
        return self.domain.decode(self.sample_codes(rows, bits=bits), self.kind, bits=bits)

    def sample_codes(self, rows: int | None = None, *, bits: Bits | None = None) -> Integers:
        """Returns synthetic rows as codes of the domain."""
        count = self.rows if rows is None else check.integer(rows=rows, at_least=0)
        source = source_of(bits)
        drawn = sample_rows(self.law, count, bits=source)
        columns = [
            self.merges[name].split(drawn[name], uniforms(count, bits=source)) if name in self.merges else drawn[name]
            for name in self.domain.columns
        ]
        return np.stack(columns, axis=1)

    def __str__(self) -> str:
        columns = len(self.domain.columns)
        made = f"{self.generator} of {columns} columns, about {self.rows:,} rows, {len(self.measurements)} marginals"
        return made if self.private else f"{made}; seeded, not private"

    def counts(self, attributes: Attributes) -> Table:
        """Returns the expected counts of the cells of some columns, of as many rows as were estimated.

        The last place of a column is that of missing values and others, unless it was declared without them.
        """
        table = self.law.marginal(attributes)
        for axis, name in enumerate(attributes):
            if name in self.merges:
                table = self.merges[name].spread(table, axis)
        return self.rows * table

    def to_html(self) -> str:
        """Returns a page on what the model is good for: columns, the worst pairs, and what was not measured.

        It follows from the model alone: nothing looks at private rows again, and nothing is spent.

        Raises:
            MissingExtra: if charts cannot be drawn here.
        """
        text: str = load("discreet.synthetic.quality.quality_page", "A page").quality_page(self)
        return text

    def to_json(self) -> str:
        """Returns the model as text, without anything that was not released."""
        found = {
            "format": FORMAT,
            "generator": self.generator,
            "domain": json.loads(self.domain.to_json()),
            "event": json.loads(events.to_json(self.event)),
            "rho": str(self.rho),
            "promise": None if self.promise is None else [str(self.promise.epsilon), str(self.promise.delta)],
            "charges": [[list(about), str(rho)] for about, rho in self.charges],
            "neighbours": self.neighbours.value,
            "rows_per_unit": self.rows_per_unit,
            "measurements": [_serialize_marginal(marginal) for marginal in self.measurements],
            "unmerged": [_serialize_marginal(marginal) for marginal in self.unmerged],
            "rows": self.rows,
            "kind": self.kind.value,
            "merges": {name: merge.as_dict() for name, merge in self.merges.items()},
            "private": self.private,
            "potentials": [[list(factor.attributes), factor.logs.tolist()] for factor in self.potentials],
        }
        return json.dumps(found, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Model:
        """Returns the model that a text holds, also one that an earlier version wrote.

        Raises:
            InvalidParameter: if the text is none that `to_json` wrote, or of a later version.
        """
        try:
            found = json.loads(text)
            if found["format"] not in (FORMAT, _FIRST):
                raise KeyError("format")
            return _model(found)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter(
                "text", "another text", "to be the text of a model", "Pass what to_json returned."
            ) from None


def sampling_bits(random_state: int | None) -> Bits:
    """Returns the source of randomness: secure for None, seeded for a whole number."""
    if random_state is None:
        return source_of(None)
    return SeededBits(check.integer(random_state=random_state))


def law_of(domain: Domain, merges: Mapping[str, Merge], potentials: tuple[Factor, ...]) -> CalibratedTree:
    """Returns the probabilities of rows that potentials give, with public zeros."""
    sizes = {name: merges[name].size if name in merges else size for name, size in domain.sizes.items()}
    return model_of(sizes, potentials, zeros=merged_zeros(domain.zeros(), merges))


def _serialize_marginal(marginal: NoisyMarginal) -> list[Any]:
    return [list(marginal.attributes), marginal.values.tolist(), marginal.sigma, marginal.residual]


def _marginals(found: Iterable[Any]) -> tuple[NoisyMarginal, ...]:
    return tuple(
        NoisyMarginal(tuple(names), np.array(values, dtype=np.float64), sigma, residual)
        for names, values, sigma, residual in found
    )


def _promise(found: Any) -> ApproxDP | None:
    if found is None:
        return None
    epsilon, delta = found
    return ApproxDP(Fraction(epsilon), Fraction(delta))


def _model(found: dict[str, Any]) -> Model:
    domain = Domain.from_json(json.dumps(found["domain"]))
    merges = {name: Merge.from_dict(merge) for name, merge in found["merges"].items()}
    potentials = tuple(Factor(tuple(names), np.array(logs)) for names, logs in found["potentials"])
    return Model(
        generator=found["generator"],
        domain=domain,
        event=events.from_json(json.dumps(found["event"])),
        rho=Fraction(found["rho"]),
        charges=tuple((tuple(about), Fraction(rho)) for about, rho in found["charges"]),
        neighbours=Neighbours(found["neighbours"]),
        rows_per_unit=found["rows_per_unit"],
        measurements=_marginals(found["measurements"]),
        promise=_promise(found.get("promise")),
        unmerged=_marginals(found["unmerged"] if found["format"] == FORMAT else ()),
        rows=found["rows"],
        kind=FrameKind(found["kind"]),
        merges=merges,
        private=found["private"],
        law=law_of(domain, merges, potentials),
        potentials=potentials,
    )
