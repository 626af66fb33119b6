"""A check of model, losses and layers on public examples, before any private example is read.

The loop of the user runs on public batches first, and some of them are neighbours of each other:

- the first, the middle or the last example is replaced by one that is far above all others, far below them, or no
  number at all, in batches of 5 and 8;
- the first, the middle or the last example is removed, and examples come alone;
- the first batch comes once more at the end, when a model that keeps something has kept it.

The losses, the norms and the sum of the gradients of all other examples must stay what they are. Besides, the gradient
of an example's loss at the outputs of every layer must be 0 at the rows of all others, the gradients that the layers'
rules give must be those of PyTorch, no parameter may be used past its layer, and buffers must stay what they are. So
batch statistics, contrastive losses, losses that are divided by something of the batch, sorted batches and penalties of
parameters are found, whatever they are called. What no such test can find is in `docs/known_vulnerabilities.md`.

Examples that go through the model alone (`physical_batch=1`) cannot be mixed, and are checked alone.

Tolerances. In a batch of the same shape, the other examples are computed by the same operations on the same numbers,
so that their bits mostly stay. Where a model cuts a batch to its longest text, sums have other lengths: 10^-4 is far
above what that rounds off in 32 bits. Batches of other sizes are multiplied in another order, which moved gradients by
2 10^-7 in encoders of 6 and 12 layers: 10^-3. In 8 bits every layer rounds by 2^-8, which moved the gradients of whole
examples by 0.6 % in encoders of 2 to 12 layers: 0.03 and 0.1, where the least division by a batch's size changes
an example that comes alone by a factor of 8. What replaces an example is 10^4 times as far away as the others, so that
a share of 10^-8 of it is found, or of 10^-5 in 8 bits. Differences of gradients are compared with the whole gradient of
an example: a single parameter's may be nothing but rounding, such as that of the biases of keys in attention.

A compiled model is compared with itself. It is compared with the model as it was written where examples come alone,
without dropout, for which a compiler draws other numbers. So uses of layers that it does not report are found, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from discreet.deep.check_surroundings import (
    Generators,
    ModelMode,
    ModelState,
    ModuleModes,
    all_digits,
    as_written,
    looked_up,
    no_numbers,
)
from discreet.deep.clipping import LayerCallRecorder, PerExampleGradients
from discreet.deep.poisson_batches import PoissonBatches
from discreet.deep.public_examples import FEWEST, Kind, OutlierKind
from discreet.errors import InvalidParameter

_FEW, _MANY = 5, 8  # examples in a batch; 7 where one of them is removed
_SAME_SHAPE, _OTHER_SHAPE = (1e-4, 0.03), (1e-3, 0.1)  # for 32 bits, and for products of 8
_RULE = (1e-3, 0.03)
_FLOOR = 0.01  # of the largest norm: examples that are fitted have gradients of nothing but rounding
_CANCELLED = 0.1
_SMALLEST = 1e-30
_DIFFERENT = 3e-4  # what is found if two examples change places

_FORGETFUL = (
    "If the model was compiled and run before the trainer was made, call torch.compiler.reset() first. A model that "
    "was compiled then does not report its layers."
)
_MIXED = (
    "Examples must not depend on each other: no batch statistics, no division by the batch's size, sum or longest "
    "text. Or pass physical_batch=1, which sends examples through the model one at a time."
)
_KEEPS = (
    "The same batch came twice. The model or the loop keeps something from batch to batch, or draws random numbers "
    "that torch.set_rng_state does not reset: use PyTorch's default generators."
)
_ALIKE = (
    "Examples that look alike to it hide what mixes them: pass example=[...], at least three public ones that differ."
)
_CAUGHT = "Do not catch the errors of trainer.step: a model that is refused must not see private examples."
_RANDOM = (
    "Random numbers that go on in evaluation hide what mixes examples. Augment examples in the dataset's "
    "__getitem__, or in the loop under `if model.training`."
)
_OUTSIDE = (
    "The losses use it outside its layer's own call. For a penalty such as weight decay, pass weight_decay= to the "
    "optimizer, e.g. torch.optim.AdamW. Use all other parameters in the forward pass of the module that has them."
)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Describes a public batch.

    Attributes:
        kinds: of its examples.
        mode: of the model.
        written: whether the model runs as it was written, be it compiled or not.
        exact: whether gradients are compared with those of PyTorch.
        changed: places that are no part of the sum of gradients.
        weights: of that sum; None for those that give all gradients about the same length.
    """

    kinds: tuple[Kind, ...]
    mode: ModelMode = ModelMode.QUIET
    written: bool = True
    exact: bool = False
    changed: tuple[int, ...] = ()
    weights: Tensor | None = None

    @property
    def far(self) -> list[int]:
        """Returns the places of examples that replace others, whose own losses may be anything."""
        return [place for place, kind in enumerate(self.kinds) if not isinstance(kind, int)]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Holds what the model gave for a batch.

    Attributes:
        batch: the batch.
        losses: of its examples.
        norms: of the gradients of its examples.
        names: of the parameters that were used.
        sums: of gradients with `weights`.
        weights: of the examples in the sum.
        drew: whether random numbers were drawn, outside of PyTorch's own dropout.
        after: the state of the generators after it.
    """

    batch: _Batch
    losses: Tensor
    norms: Tensor
    names: frozenset[str]
    sums: dict[str, Tensor]
    weights: Tensor
    drew: bool
    after: Tensor


class ModelCheck:
    """Runs the check, batch by batch.

    Args:
        model: the model.
        recorder: of its layers.
        batches: that make public examples.
        names: of the trainable parameters.

    Attributes:
        state: what the model keeps, as it was left by public examples.
        done: whether all went well.
    """

    def __init__(
        self, model: nn.Module, recorder: LayerCallRecorder, batches: PoissonBatches, names: dict[nn.Parameter, str]
    ) -> None:
        self._model, self._recorder, self._names = model, recorder, names
        self._public, self._most = batches.public, batches.most
        self._modes, self._generators = ModuleModes(model), Generators()
        self._conditions, self._passing = ExitStack(), ExitStack()
        self._batch, self._taken = _Batch(()), False
        self._seen: _Seen | None = None
        self._looked_up: list[tuple[Tensor, int]] = []
        self._reduced, self._problem = False, ""
        self.state = ModelState(model)
        self.done = False

    def run(self) -> Iterator[tuple[Any, int]]:
        """Yields public batches; `take` must be given the losses of each.

        Raises:
            InvalidParameter: if the model or the losses do not keep examples apart.
        """
        try:
            for batch in self._schedule():
                self._enter(batch)
                made = self._public.batch(batch.kinds)
                yield made, len(batch.kinds)
                if not self._taken:  # who runs the loop caught the error
                    raise InvalidParameter("losses", "of public examples", "to be taken without an error", _CAUGHT)
                self._public.learn_words(made, self._looked_up)
                self._looked_up.clear()
        finally:
            self.leave()
        self._recorder.reduced = self._reduced
        self.done = True

    @property
    def is_exact(self) -> bool:
        """Returns whether PyTorch's own gradients of the batch that was yielded last are needed, too."""
        return self._batch.exact

    def leave(self) -> None:
        """Gives back modes, random numbers and settings, also after a loop that was broken off."""
        self._passing.close()
        self._conditions.close()

    def _enter(self, batch: _Batch) -> None:
        self.leave()
        self._batch, self._taken = batch, False
        self._conditions.enter_context(self._modes.set(batch.mode))
        self._conditions.enter_context(self._generators.rewound())
        self._conditions.enter_context(all_digits())
        if batch.written:
            self._conditions.enter_context(as_written())
        if any(not isinstance(kind, int) and kind[1] is OutlierKind.NAN for kind in batch.kinds):
            self._passing.enter_context(no_numbers())
        if self._seen is None:
            self._conditions.enter_context(looked_up(self._model, self._looked_up))
        self.state.begin()

    # ------------------------------------------------------------------------------------------------- batches

    def _schedule(self) -> Iterator[_Batch]:
        few = tuple(range(min(_FEW, self._most, self._public.different)))
        yield _Batch(few, ModelMode.TRAINING, exact=True)
        if self._most == 1:
            yield from (_Batch((kind,), ModelMode.TRAINING, exact=True) for kind in (1, 2))
        first = yield from self._base(few)
        self._check_differences(first)
        if self._most > 1:
            yield from self._neighbours(few, first)
        yield first.batch
        each = list(range(len(few)))
        self._compare(first, self._last(), each, each, same=True, condition="to be the same each time", hint=_KEEPS)
        if self._problem:
            hint = "Use no dropout inside layers without a rule, and nothing that mixes examples inside a layer."
            raise InvalidParameter("parameter", self._problem, "to have the gradient that its layer reports", hint)

    def _neighbours(self, few: tuple[int, ...], first: _Seen) -> Iterator[_Batch]:
        many = tuple(place % self._public.different for place in range(min(_MANY, self._most)))
        yield from self._replace_examples(first, (OutlierKind.ABOVE, OutlierKind.NAN, OutlierKind.BELOW))
        base = yield from self._base(many, written=False)
        yield from self._replace_examples(base, (OutlierKind.BELOW, OutlierKind.ABOVE, OutlierKind.ABOVE))
        if first.drew or base.drew:
            still = yield from self._base(few, ModelMode.STILL)
            yield from self._replace_examples(still, (OutlierKind.NAN, OutlierKind.BELOW, OutlierKind.ABOVE))
            base = yield from self._base(many, ModelMode.STILL, written=False)
            if base.drew:
                raise InvalidParameter("model", type(self._model).__name__, "to be still in evaluation", _RANDOM)
        yield from self._remove_examples(base)

    def _base(self, kinds: tuple[int, ...], mode: ModelMode = ModelMode.QUIET, *, written: bool = True) -> Any:
        yield _Batch(kinds, mode, written, changed=_ends(len(kinds)))
        return self._last()

    def _replace_examples(self, base: _Seen, fars: Sequence[OutlierKind]) -> Iterator[_Batch]:
        kinds = base.batch.kinds
        for place, far in zip(_ends(len(kinds)), fars, strict=False):
            other: Kind = (_number(kinds[place]), far)
            yield replace(base.batch, kinds=(*kinds[:place], other, *kinds[place + 1 :]), weights=base.weights)
            if base.drew and not torch.equal(base.after, self._last().after):
                continue  # how many numbers are drawn depends on a length: what is compared is the still model
            others = [each for each in range(len(kinds)) if each != place]
            self._compare(base, self._last(), others, others, same=True)
            if 0 < place < len(kinds) - 1:
                yield from self._replaced_beside(self._last(), place)

    def _replaced_beside(self, base: _Seen, place: int) -> Iterator[_Batch]:
        """Replaces the first example, next to one far away: what is cut off or filled in may depend on others."""
        first, *rest = base.batch.kinds
        far = OutlierKind.ABOVE if base.batch.kinds[place] == (place, OutlierKind.NAN) else OutlierKind.BELOW
        yield replace(base.batch, kinds=((_number(first), far), *rest))
        if not base.drew or torch.equal(base.after, self._last().after):
            self._compare(base, self._last(), [place], [place], same=True)

    def _remove_examples(self, base: _Seen) -> Iterator[_Batch]:
        kinds = base.batch.kinds
        for place in _ends(len(kinds)):
            others = [each for each in range(len(kinds)) if each != place]
            left = tuple(kinds[each] for each in others)
            yield replace(base.batch, kinds=left, weights=base.weights[others])
            self._compare(base, self._last(), others, list(range(len(others))), same=False)
        for place in _ends(len(kinds)):
            yield replace(base.batch, kinds=(kinds[place],), written=True, weights=base.weights[[place]])
            self._compare(base, self._last(), [place], [0], same=False)

    def _check_differences(self, seen: _Seen) -> None:
        """Refuses examples that are all alike to the model: whatever it did to their order would not be seen.

        An example of floats that is no number shows that in any case.
        """
        if self._public.has_floats:
            return
        pairs = torch.stack([seen.losses, seen.norms], 1)
        apart = (pairs[:, None] - pairs[None]).abs() > _DIFFERENT * (pairs[:, None].abs() + pairs[None].abs())
        fresh = [not bool((~apart[place, :place].any(-1)).any()) for place in range(len(pairs))]
        if sum(fresh) < min(FEWEST, len(pairs)):
            raise InvalidParameter(
                "model", type(self._model).__name__, "to give different results for synthetic examples", _ALIKE
            )

    def _last(self) -> _Seen:
        if self._seen is None:
            raise InvalidParameter("losses", None, "to be given for every batch", "Call trainer.step(losses).")
        return self._seen

    # ------------------------------------------------------------------------------------------------ measuring

    def take(self, losses: Tensor, examples: int) -> None:
        """Takes the losses of the batch that was yielded last."""
        after = self._generators.state()
        self._passing.close()
        first = self._seen is None
        try:
            truth = self._truth(losses) if self._batch.exact and losses.shape == (examples,) else None
            found = PerExampleGradients(self._recorder, losses, self._names, examples)
            self._reduced = self._reduced or found.reduced
            with torch.no_grad():
                self._seen = self._measure_gradients(found, losses.detach().double(), after)
                if truth is not None:
                    self._problem = self._problem or truth.first_difference(found, _RULE[self._reduced])
        finally:
            self.leave()
        if first:
            self.state.add()
        self.state.check()
        self._taken = True

    def _truth(self, losses: Tensor) -> _Truth:
        """Returns the gradient of each example, by a backward pass for each."""
        nodes = {edge.node for edge in self._recorder.outputs}
        outside = _find_reached_parameter(losses, nodes, self._names)
        if outside is not None:
            raise InvalidParameter("parameter", outside, "to be used in its layer's own call only", _OUTSIDE)
        edges = [edge for call in self._recorder.calls for edge in _edges(call) if edge is not None]
        truth = _Truth(self._names)
        for place, loss in enumerate(losses):
            rows = torch.autograd.grad(loss, [*self._names, *edges], retain_graph=True, allow_unused=True)
            truth.add(rows[: len(self._names)])
            if any(_reaches_others(row, place, len(losses)) for row in rows[len(self._names) :]):
                raise InvalidParameter("losses", "of one example", "to have no gradient at another", _MIXED)
        return truth

    def _measure_gradients(self, found: PerExampleGradients, losses: Tensor, after: Tensor) -> _Seen:
        batch, squared = self._batch, found.squared_norms()
        norms = torch.stack(list(squared.values())).sum(0).sqrt() if squared else torch.zeros_like(losses)
        kept = [place for place in range(found.examples) if place not in batch.far]
        if not bool(torch.isfinite(losses[kept]).all() and torch.isfinite(norms[kept]).all()):
            raise self._not_finite()
        weights = batch.weights
        if weights is None:
            weights = _even(norms)
            weights[list(batch.changed)] = 0
        # An example of weight 0 is overwritten, so that only one sum is asked for: gradients are not compared twice.
        some = bool((weights != 0).any()) and not batch.exact
        sums = found.weighted_sums(dict.fromkeys(squared, weights)) if some else {}
        drew = not torch.equal(after, self._generators.first)
        return _Seen(batch, losses, norms, frozenset(squared), sums, weights, drew, after)

    def _not_finite(self) -> InvalidParameter:
        if self._batch.far:
            return InvalidParameter("losses", "of one example", "to be the same in every batch", _MIXED)
        hint = "Synthetic examples have no finite loss here: pass example=[...], three public ones."
        return InvalidParameter("losses", "of public examples", "to be finite", hint)

    # ------------------------------------------------------------------------------------------------ comparing

    def _compare(
        self,
        base: _Seen,
        other: _Seen,
        left: list[int],
        right: list[int],
        *,
        same: bool,
        condition: str = "to be the same in every batch",
        hint: str = _MIXED,
    ) -> None:
        """Compares some examples of a batch with the same ones of another."""
        if base.names != other.names:
            raise InvalidParameter("model", type(self._model).__name__, "to use its layers in every batch", _FORGETFUL)
        tolerance = (_SAME_SHAPE if same else _OTHER_SHAPE)[self._reduced]
        pairs = ((base.losses[left], other.losses[right]), (base.norms[left], other.norms[right]))
        near = all(_close(one, two, tolerance) for one, two in pairs)
        if near and base.sums and other.sums:
            squares = [(base.sums[name] - other.sums[name]).double().square().sum() for name in base.sums]
            lengths = torch.where(base.weights != 0, base.weights * base.norms, 0)
            near = bool(torch.stack(squares).sum().sqrt() <= tolerance * lengths.norm() + _SMALLEST)
        if not near:
            raise InvalidParameter("losses", "of one example", condition, hint)


class _Truth:
    """Gradients of examples that PyTorch has found: squared norms, and the sum with weights 1, 2, 3 and so on."""

    def __init__(self, names: dict[nn.Parameter, str]) -> None:
        self._names = names
        self._sums = {name: torch.zeros_like(parameter, dtype=torch.float64) for parameter, name in names.items()}
        self._squared: dict[str, list[Tensor]] = {name: [] for name in names.values()}

    def add(self, rows: Sequence[Tensor | None]) -> None:
        """Adds the gradient of the next example."""
        for (parameter, name), row in zip(self._names.items(), rows, strict=True):
            squared = self._squared[name]
            squared.append(torch.zeros((), dtype=torch.float64, device=parameter.device))
            if row is not None:
                squared[-1] = row.double().square().sum()
                self._sums[name] += len(squared) * row

    def first_difference(self, found: PerExampleGradients, tolerance: float) -> str:
        """Returns the name of a parameter whose gradients are not those of the layers' rules; "" if there is none."""
        ours = found.squared_norms()
        weights = torch.arange(
            1, found.examples + 1, dtype=torch.float64, device=next(iter(self._sums.values())).device
        )
        sums = found.weighted_sums(dict.fromkeys(ours, weights))
        squared = {name: torch.stack(several) for name, several in self._squared.items()}
        whole = sum(squared.values())
        scale = float(torch.stack([each.abs().max() for each in self._sums.values() if each.numel()]).max())
        # In 8 bits, the sum of a parameter's gradients over positions that cancel is a part of 2^-8 of each of them.
        share = _CANCELLED if found.reduced else tolerance
        for name, expected in self._sums.items():
            if name not in sums:
                if bool((squared[name] != 0).any()):
                    return name
                continue
            own = float(expected.abs().max()) if expected.numel() else 0.0
            short = ours[name] < (1 - tolerance) * squared[name] - tolerance**2 * whole - _SMALLEST  # above is safe
            apart = (sums[name] - expected).abs() > tolerance * max(own, share * scale) + _SMALLEST
            if bool(short.any()) or bool(apart.any()):
                return name
        return ""


def _ends(count: int) -> tuple[int, ...]:
    """Returns the first place, the one in the middle, and the last."""
    return tuple(sorted({0, count // 2, count - 1}))


def _number(kind: Kind) -> int:
    return kind if isinstance(kind, int) else kind[0]


def _even(norms: Tensor) -> Tensor:
    """Returns weights that give gradients about the same length, each one its own."""
    each = 1 + torch.arange(len(norms), dtype=norms.dtype, device=norms.device) / len(norms)
    return each / (norms + _FLOOR * norms.max() + _SMALLEST)


def _close(one: Tensor, other: Tensor, tolerance: float) -> bool:
    """Returns whether numbers differ by a small part of themselves and of the largest; NaN is close to NaN."""
    finite = torch.isfinite(one)
    if not torch.equal(finite, torch.isfinite(other)):
        return False
    one, other = one[finite], other[finite]
    scale = one.abs() + _FLOOR * one.abs().amax() if len(one) else one
    return bool(((one - other).abs() <= tolerance * scale + _SMALLEST).all())


def _edges(call: Any) -> Sequence[Any]:
    """Returns where gradients arrive whose first dimension is that of examples."""
    edges: Sequence[Any] = call.edges
    return edges[:1] if isinstance(call.layer, nn.RNNBase) else edges


def _reaches_others(row: Tensor | None, place: int, examples: int) -> bool:
    """Returns whether a gradient of one example's loss is not 0 at other examples; NaN is 0 times infinity."""
    if row is None or not row.dim() or len(row) != examples:
        return False
    others = torch.cat([row[:place], row[place + 1 :]])
    return bool(((others != 0) & ~others.isnan()).any())


def _find_reached_parameter(losses: Tensor, ends: set[Any], names: dict[nn.Parameter, str]) -> str | None:
    """Returns the name of a parameter that the graph of the losses reaches other than through the outputs of layers."""
    waiting, seen = [losses.grad_fn], set(ends)
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        parameter = getattr(node, "variable", None)
        if parameter is not None and parameter in names:
            return names[parameter]
        waiting += [before for before, _ in node.next_functions]
    return None
