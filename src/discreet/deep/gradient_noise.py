"""The noisy sum of clipped gradients: added up piece by piece, released once, with exact noise.

What is proved, and what is not. The noise is a real normal deviate added to the sum and rounded to a public grid,
correctly (`mechanisms.Gaussian`); no float of it is drawn. The sum itself comes from floats, in one of two ways.

*Alone*: examples go through the model one at a time (`physical_batch=1`). Then an example's clipped gradient is a
function of this example and the public weights, on one machine with one setting of threads. It is rounded toward zero
to a grid of at least 32 sqrt(d) steps to the bound C, which makes no vector longer. Multiples of the grid below 2^53
steps are added in 64 bits without any rounding. Weights aim at C (1 - 2^-10); norms err on the safe side; rounding the
weight and its product with the output gradient moves the vector by at most 2^-13 C (`clipping.layer_rule`), and adding
up positions in floats by at most n 2^-24 C / (4 sqrt(2^-24)) = n 2^-14 C for n positions, in the worst case of signs
and cancellation that all conspire. To cover any n, the vector that was made is measured once more, in 64 bits, and
shortened if it is longer than C (1 - 2^-20): its integers have a norm of at most C, for every example. The sensitivity
under add/remove is C, with no assumption.

*Together*: examples go through the model in pieces. The same bounds hold for the added example. Those of others may
round differently in its company, because libraries multiply matrices of other sizes in another order. The part of C
that weights leave free, 2^-10 C, is meant for all such differences together; typical ones are below 2^-20 C for each
example and of random signs, 2^-15 C for a thousand of them. This is an assumption on the arithmetic and no theorem: see
`docs/known_vulnerabilities.md`.

*Reduced precision* (bfloat16 under `torch.autocast`): weights aim at C (1 - 2^-5). Norms and sums are computed from the
numbers of 8 bits that the layers multiplied, in 32 bits. So the added example is covered as above, with at most 2^-14 C
for its weighting in place of 2^-13 C (`clipping.layer_rule`). The rest, nearly 2^-5 C, is meant for the others.
Their activations are sums in 32 bits that are rounded to 8: a sum that is taken in another order moves by about 2^-22
of itself, which carries about one of 2^13 numbers to its neighbour of 8 bits, 2^-8 further. Where every sum of a model
of three layers was taken in another order on purpose, and every example was clipped, the whole moved by 2^-8.3 to
2^-12 C for 256 examples and by 2^-7.4 C for a thousand, against 2^-14 C in 32 bits. So the assumption is the less well
founded one. Only examples in pieces whose size changes are concerned, if a library's order depends on sizes alone.
Examples that come alone need no assumption: what they contribute is measured at its end.

Products of 32 bits that a GPU rounds to 11 bits first (TF32, which PyTorch uses for convolutions by default) leave as
much of the bound free, and are covered by assumption alone, the added example included: errors of 2^-11 for each
product are meant to have random signs.

On a GPU the noise is drawn there, in floats, unless exact noise is asked for: see `discreet.deep.device_noise`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import torch
from torch import Tensor

from discreet.check import Number
from discreet.deep.banded_noise import ALONE, Band, CorrelatedNoiseState
from discreet.deep.clipping import ClipRule
from discreet.deep.device_noise import device_normals, on_public_grid
from discreet.errors import InvalidParameter
from discreet.mechanisms import Gaussian
from discreet.noise import Bits

_STEPS = 32
_SAFE = 1 - 2.0**-20


class NoisySum:
    """The sum of one batch's clipped gradients.

    Formal guarantee: `release` gives a function of sum + N(0, sigma^2 I), sigma = noise_multiplier times the rule's
    sensitivity, over all parameters together; see the module for what the sum is. It can be released once. With
    correlated noise it gives functions of C x + N(0, sigma^2 I) for all sums x, see `discreet.deep.banded_noise`.

    Args:
        sizes: how many numbers each trainable parameter has, by name, in the order of the release.
        clip: the rule that bounds an example's gradient.
        noise_multiplier: sigma in units of the sensitivity.
        alone: whether each sum that is added comes from one example.
        device: where the gradients are.
        exact: whether noise is exact and comes from the processor, or is drawn on the device.
        band: how noise is correlated from release to release; by default it is not.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        clip: ClipRule,
        noise_multiplier: Number,
        *,
        alone: bool = False,
        device: torch.device | str = "cpu",
        exact: bool = True,
        band: Band = ALONE,
    ) -> None:
        self._sizes = dict(sizes)
        self._alone = alone
        self._device, self._exact = torch.device(device), exact
        self.clip = clip
        self.correlation, move = CorrelatedNoiseState(band), clip.sensitivity * band.sensitivity
        self.mechanism = Gaussian.with_multiplier(noise_multiplier=noise_multiplier, sensitivity=move)
        self._step = _grid_step(clip.bound, sum(self._sizes.values()))
        self._total = self._empty()

    def _empty(self) -> Tensor:
        return torch.zeros(sum(self._sizes.values()), dtype=torch.float64, device=self._device)

    def clear(self) -> None:
        """Forgets what was added by a batch that was broken off, so that no example counts twice in a release."""
        self._total = self._empty()

    def add(self, sums: Mapping[str, Tensor]) -> None:
        """Adds the clipped sum of a piece; a parameter that it lacks has a gradient of 0."""
        flat = self._empty() if self._alone else self._total
        for name, part in zip(self._sizes, flat.split(list(self._sizes.values())), strict=True):
            if name in sums:
                part.add_(sums[name].detach().reshape(-1).to(part))
        if self._alone:
            self._total += self.on_grid(flat)

    def on_grid(self, gradient: Tensor) -> Tensor:
        """Returns one example's gradient on the grid, with a norm of at most the bound.

        Integers up to 2^53 are exact in 64 bits, and so are their multiples of a power of two. The norm is computed
        with a relative error below 2^-20 for fewer than 2^32 numbers.
        """
        norm = float(torch.linalg.vector_norm(gradient))
        most = float(self.clip.bound) * _SAFE
        if norm > most:
            gradient = gradient * (most / norm * _SAFE)
        return torch.trunc(gradient / self._step) * self._step

    def release(self, bits: Bits | None = None) -> dict[str, Tensor]:
        """Returns the noisy sum for each parameter, flat and in 64 bits, and forgets what was added."""
        total, self._total = self._total, self._empty()
        measured = self.correlation.encode(total)
        if self._exact:
            noisy = torch.from_numpy(self.mechanism.release(measured.cpu().numpy(), bits=bits)).to(self._device)
        else:
            sigma = float(self.mechanism.sigma)
            noisy = on_public_grid(measured + sigma * device_normals(len(total), self._device, bits), sigma)
        return dict(zip(self._sizes, self.correlation.decode(noisy).split(list(self._sizes.values())), strict=True))


def _grid_step(bound: Fraction, size: int) -> float:
    """Returns the largest power of two with at least 32 sqrt(size) steps to the bound."""
    if size == 0:
        raise InvalidParameter(
            "model", "without trainable parameters", "to have some", "Call requires_grad_() on them."
        )
    steps = _STEPS * math.sqrt(size)
    return 2.0 ** math.floor(math.log2(float(bound) / steps))
