"""Fits: the model of a whole table that agrees best with noisy marginals."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum

import numpy as np

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.inference.belief_propagation import BeliefPropagation
from discreet.synthetic.inference.calibrated_tree import CalibratedTree
from discreet.synthetic.inference.convex_solvers import MarginalFitProblem, SolverResult, follow_path, mirror_descent
from discreet.synthetic.inference.factors import Attributes, Factor, Sizes, Table
from discreet.synthetic.inference.junction_tree import JunctionTree, junction_tree
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal, combine_marginals, estimated_total, residual

_Key = tuple[frozenset[str], bool]
_PATH = 10.0  # a weight of entropy at which any start is near enough, and the step from there to smaller ones
_STEP = 4.0
_COARSE = 0.05  # the tolerance on the way


class Solver(Enum):
    """Sets how a model is fitted."""

    QUASI_NEWTON = "quasi_newton"
    MIRROR_DESCENT = "mirror_descent"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphicalModel:
    """A model fitted to noisy marginals: a product of one potential per measured set, over a junction tree.

    Args:
        model: its probabilities, clique by clique.
        total: how many rows it represents.
        potentials: logarithms, one table for each measured set, by which another fit can begin.
        loss: sum of |M p - y|^2 / (2 sigma^2) in counts.
        gap: by how much the loss with its entropy term exceeds the least possible at most.
        evaluations: passes of belief propagation that were needed.
    """

    model: CalibratedTree
    total: float
    potentials: Mapping[_Key, Factor] = field(repr=False)
    loss: float
    gap: float
    evaluations: int

    @property
    def tree(self) -> JunctionTree:
        """Returns the junction tree."""
        return self.model.tree

    def counts(self, attributes: Attributes) -> Table:
        """Returns the expected counts of the cells of some attributes, which need not be in one clique."""
        return self.total * self.model.marginal(attributes)

    def many_counts(self, sets: Iterable[Attributes]) -> list[Table]:
        """Returns the expected counts of several sets of attributes, which take less time together."""
        return [self.total * table for table in self.model.marginals(sets)]


def fit(
    sizes: Sizes,
    marginals: Iterable[NoisyMarginal],
    *,
    total: float | None = None,
    zeros: Iterable[Factor] = (),
    cliques: Iterable[Collection[str]] = (),
    start: GraphicalModel | None = None,
    solver: Solver = Solver.QUASI_NEWTON,
    tolerance: float = 0.01,
    evaluations: int = 1000,
    entropy: float = 1.0,
    ridges: Mapping[Attributes, Table] | None = None,
) -> GraphicalModel:
    """Returns the model whose marginals are closest to noisy ones, in units of their noise.

    Minimises sum |M p - y|^2 / (2 sigma^2) - T H(p) over distributions p of the whole domain, H the entropy: the
    minimum is unique, and a graphical model over the measured sets (Jaynes 1957; McKenna, Sheldon, Miklau 2019). The
    term keeps models from following noise: it moves a cell whose log potential is t from its measured value by
    `entropy` t sigma^2 / (the largest sigma), which is less than the noise of cells with information. It vanishes
    with the noise.

    Formal guarantee: a function of its arguments only, without randomness: post-processing of what was released. Cells
    that `zeros` rule out have probability 0 exactly. With the quasi-Newton solver, unless `evaluations` run out, fitted
    values of measured cells are within sqrt(tolerance) sigma of the best ones in the root mean square.

    Args:
        sizes: how many values each attribute has.
        marginals: what was measured; several of the same attributes, or parts of others, may be among them.
        total: the number of rows, if it is public; estimated from the marginals if not.
        zeros: factors whose cells are 0 where something is possible and minus infinity where not.
        cliques: further sets of attributes that shall be in one clique.
        start: an earlier fit to begin with.
        solver: the method.
        tolerance: how precise the fit shall be.
        evaluations: the most passes of belief propagation.
        entropy: T is this times total / (the largest sigma), where p has total 1.
        ridges: for some residual marginals a positive table R, in rows: a cell whose log potential is t is moved from
            its measured value by R t, so that R (the largest sigma) / `entropy` takes the place of sigma^2.

    Raises:
        InvalidParameter: if there is no marginal, one does not match the sizes, or zeros leave nothing.

    >>> y = NoisyMarginal(("a", "b"), np.array([[30.0, 10.0], [20.0, 40.0]]), sigma=0.01)
    >>> fit({"a": 2, "b": 2}, [y]).counts(("b", "a")).round(1)
    array([[30., 20.],
           [10., 40.]])
    """
    given, zeros = list(marginals), list(zeros)
    _check(sizes, given, zeros)
    check.positive(tolerance=tolerance)
    check.positive(entropy=entropy)
    check.integer(evaluations=evaluations, at_least=1)
    rows = float(check.positive(total=total)) if total is not None else estimated_total(given)
    tree = junction_tree(sizes, [*(m.attributes for m in given), *(z.attributes for z in zeros), *cliques])
    measured = [m.transpose_to(tree.order_attributes(m.attributes)) for m in combine_marginals(given) if not m.is_total]
    propagation = BeliefPropagation(tree, [m.attributes for m in measured], zeros)
    problem = _problem(propagation, measured, rows, entropy, ridges or {})
    theta = _start(propagation, measured, start)
    unit = 0.5 * propagation.length  # what noise alone contributes to the loss
    if solver is Solver.MIRROR_DESCENT:
        solution = mirror_descent(problem, theta, gap=tolerance * unit, evaluations=evaluations)
    else:
        path = _path(entropy) if start is None else [1.0]
        gaps = [unit * max(_COARSE, tolerance)] * (len(path) - 1) + [unit * tolerance]
        solution = follow_path(problem, theta, list(zip(path, gaps, strict=True)), evaluations=evaluations)
    return _fit(propagation, measured, rows, solution)


def _path(entropy: float) -> list[float]:
    """Returns by how much the weight of entropy is raised at first, and on the way down to 1."""
    steps = max(0, math.ceil(math.log(_PATH / entropy, _STEP)))
    return [_STEP**power for power in range(steps, -1, -1)]


def model_of(
    sizes: Sizes,
    potentials: Iterable[Factor],
    *,
    zeros: Iterable[Factor] = (),
    cliques: Iterable[Collection[str]] = (),
) -> CalibratedTree:
    """Returns the model of some potentials: what is stored of a fit is enough to have its model again.

    Raises:
        InvalidParameter: if a potential is not finite, or does not match the sizes.

    >>> y = NoisyMarginal(("a", "b"), np.array([[30.0, 10.0], [20.0, 40.0]]), sigma=0.01)
    >>> found = fit({"a": 2, "b": 2}, [y])
    >>> bool(np.all(model_of({"a": 2, "b": 2}, found.potentials.values()).tables[0] == found.model.tables[0]))
    True
    """
    factors, zeros = list(potentials), list(zeros)
    _check_shapes(sizes, [(f.attributes, f.logs.shape) for f in (*factors, *zeros)])
    if not all(np.all(np.isfinite(factor.logs)) for factor in factors):
        raise InvalidParameter("potentials", "not finite", "to be finite", "Pass zeros= for what is impossible.")
    tree = junction_tree(sizes, [*(f.attributes for f in factors), *(z.attributes for z in zeros), *cliques])
    ordered = [factor.transpose_to(tree.order_attributes(factor.attributes)) for factor in factors]
    propagation = BeliefPropagation(tree, [factor.attributes for factor in ordered], zeros)
    return propagation.calibrate(np.concatenate([np.empty(0), *(factor.logs.reshape(-1) for factor in ordered)]))


def _check(sizes: Sizes, marginals: Sequence[NoisyMarginal], zeros: Sequence[Factor]) -> None:
    if not marginals:
        raise InvalidParameter("marginals", [], "to have at least one")
    for name, size in sizes.items():
        check.integer(**{f"size of {name}": size}, at_least=1)
    _check_shapes(sizes, [(m.attributes, m.values.shape) for m in marginals])
    _check_shapes(sizes, [(z.attributes, z.logs.shape) for z in zeros])
    for factor in zeros:
        if not np.all((factor.logs == 0) | np.isneginf(factor.logs)):
            raise InvalidParameter("zeros", factor.attributes, "to hold 0 and minus infinity only")


def _check_shapes(sizes: Sizes, shapes: Iterable[tuple[Attributes, tuple[int, ...]]]) -> None:
    for attributes, shape in shapes:
        if tuple(sizes.get(name, 0) for name in attributes) != shape:
            raise InvalidParameter("tables", f"{attributes} of shape {shape}", f"to match sizes {dict(sizes)}")


def _problem(
    propagation: BeliefPropagation,
    measured: Sequence[NoisyMarginal],
    total: float,
    entropy: float,
    ridges: Mapping[Attributes, Table],
) -> MarginalFitProblem:
    """Returns the problem in probabilities; each measured table is moved to the total, which no model can change."""
    project = _Projection(propagation, measured)
    values, deviations = np.empty(propagation.length), np.empty(propagation.length)
    largest = max((marginal.sigma for marginal in measured), default=1.0)
    more = {frozenset(names): Factor(names, table) for names, table in ridges.items()}
    for part, marginal in zip(propagation.slices, measured, strict=True):
        share = marginal.values.reshape(-1) / total
        values[part] = share if marginal.residual else share + (1 - share.sum()) / share.size
        deviations[part] = marginal.sigma / total
        ridge = more.get(frozenset(marginal.attributes)) if marginal.residual else None
        if ridge is not None:
            table = ridge.transpose_to(marginal.attributes).logs.reshape(-1)
            deviations[part] = np.sqrt(table * largest / entropy) / total
    return MarginalFitProblem(propagation, project(values), deviations, project, entropy * total / largest)


class _Projection:
    """Removes from residual tables their means along each axis, and leaves other tables as they are."""

    def __init__(self, propagation: BeliefPropagation, measured: Sequence[NoisyMarginal]) -> None:
        pairs = zip(propagation.slices, measured, strict=True)
        self._parts = [(part, marginal.values.shape) for part, marginal in pairs if marginal.residual]

    def __call__(self, vector: Table) -> Table:
        if not self._parts:
            return vector
        vector = vector.copy()
        for part, shape in self._parts:
            vector[part] = residual(vector[part].reshape(shape)).reshape(-1)
        return vector


def _key(marginal: NoisyMarginal) -> _Key:
    return frozenset(marginal.attributes), marginal.residual


def _start(propagation: BeliefPropagation, measured: Sequence[NoisyMarginal], earlier: GraphicalModel | None) -> Table:
    """Returns the potentials to begin with: those of an earlier fit where it has them."""
    theta = np.zeros(propagation.length)
    if earlier is None:
        return theta
    for part, marginal in zip(propagation.slices, measured, strict=True):
        known = earlier.potentials.get(_key(marginal))
        if known is not None and known.sizes == dict(zip(marginal.attributes, marginal.values.shape, strict=True)):
            theta[part] = known.transpose_to(marginal.attributes).logs.reshape(-1)
    return theta


def _fit(
    propagation: BeliefPropagation, measured: Sequence[NoisyMarginal], total: float, solution: SolverResult
) -> GraphicalModel:
    potentials = {
        _key(marginal): Factor(marginal.attributes, solution.theta[part].reshape(marginal.values.shape))
        for part, marginal in zip(propagation.slices, measured, strict=True)
    }
    return GraphicalModel(
        model=propagation.calibrate(solution.theta),
        total=total,
        potentials=potentials,
        loss=solution.loss,
        gap=solution.gap if math.isfinite(solution.gap) else math.inf,
        evaluations=solution.evaluations,
    )
