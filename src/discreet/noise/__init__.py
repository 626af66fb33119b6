"""Exact integer noise from one door to randomness.

Every sampler takes any positive rational parameter, has the exact law on an unbounded support, and works for one number
or an array. `bits=None` means the secure source; `SeededBits` is for tests and marks results as not private.
"""

from discreet.noise.categorical import choose_exponential
from discreet.noise.coin import Coin, bernoulli_exp
from discreet.noise.gaussian import discrete_gaussian
from discreet.noise.laplace import discrete_laplace, geometric, truncated_laplace
from discreet.noise.real import LazyUniform, exponential_deviate, normal_deviate, round_real
from discreet.noise.rng import Bits, SecureBits, SeededBits, source_of, system_bits
from discreet.noise.rounded_gaussian import rounded_gaussian, rounded_gaussians
from discreet.noise.uniform import bernoulli, uniform_below

__all__ = ["Bits", "Coin", "LazyUniform", "SecureBits", "SeededBits"]
__all__ += ["bernoulli", "bernoulli_exp", "choose_exponential", "discrete_gaussian", "discrete_laplace"]
__all__ += ["exponential_deviate", "geometric", "normal_deviate", "round_real", "rounded_gaussian", "rounded_gaussians"]
__all__ += ["source_of", "system_bits", "truncated_laplace", "uniform_below"]
