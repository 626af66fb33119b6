"""Exact numbers: rational parameters, public grids, enclosures of real numbers, directed rounding."""

from discreet.exact.grid import Grid, exact_value
from discreet.exact.rounding import (
    Enclosure,
    Interval,
    Real,
    UndecidedComparison,
    float_above,
    float_below,
    leading_bits,
    lower,
    root_above,
    root_below,
    settle,
    upper,
)

__all__ = ["Enclosure", "Grid", "Interval", "Real", "UndecidedComparison"]
__all__ += ["exact_value", "float_above", "float_below", "leading_bits", "lower", "root_above", "root_below", "settle"]
__all__ += ["upper"]
