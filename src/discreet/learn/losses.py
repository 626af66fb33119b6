"""Losses of linear classifiers: slopes as tables of integers, and as floats with the constants that bound them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import special
from discreet.statistics.row_sums import class_residuals, link_table, sign_residuals, softmax_residuals

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WIDTH = 0.5  # of the bend of the hinge, to both sides of 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A loss of the margins of a row, one for each output, and of the row's class.

    Attributes:
        outputs: how many margins there are; 1 for two classes.
        slope: the largest L2 norm of the gradient by the margins.
        curvature: the largest eigenvalue of the second derivative by the margins.
        at_zero: the loss where all margins are 0.
        one_signed: whether the slope is s g with g >= 0 and a sign s that the row alone decides.
        twice_smooth: whether second derivatives are continuous.
        residuals: slopes as integers, in units of 1 / RESIDUAL, of integer margins and codes of classes.
        value: losses and slopes of margins in floats, (n, outputs), and codes of classes.
    """

    outputs: int
    slope: float
    curvature: float
    at_zero: float
    one_signed: bool
    twice_smooth: bool
    residuals: Callable[[Integers, Integers], Integers]
    value: Callable[[Floats, Integers], tuple[Floats, Floats]]


def logistic(classes: int) -> Loss:
    """ln(1 + e^-m) of the margin m of the right side, or minus the logarithm of softmax for more than two classes.

    The gradient of softmax is p - e_y, whose norm is at most sqrt(2); its second derivative diag(p) - p p^T has
    eigenvalues of at most 1/2.
    """
    if classes == 2:
        return Loss(
            outputs=1,
            slope=1.0,
            curvature=0.25,
            at_zero=float(np.log(2)),
            one_signed=True,
            twice_smooth=True,
            residuals=class_residuals,
            value=_logistic,
        )
    return Loss(
        outputs=classes,
        slope=float(np.sqrt(2)),
        curvature=0.5,
        at_zero=float(np.log(classes)),
        one_signed=False,
        twice_smooth=True,
        residuals=softmax_residuals,
        value=_softmax,
    )


def hinge(classes: int) -> Loss:
    """max(0, 1 - m), its corner made round by a parabola between 1/2 and 3/2; one against the rest for many classes."""
    outputs = 1 if classes == 2 else classes
    return Loss(
        outputs=outputs,
        slope=float(np.sqrt(outputs)),
        curvature=1 / (2 * WIDTH),
        at_zero=float(outputs),
        one_signed=outputs == 1,
        twice_smooth=False,
        residuals=_hinge_residuals,
        value=_hinge,
    )


def _logistic(margins: Floats, codes: Integers) -> tuple[Floats, Floats]:
    signs = _signs(codes, 1)
    known = signs != 0
    away = signs * margins
    return np.where(known, np.logaddexp(0.0, -away), 0.0).sum(axis=1), -signs * special.expit(-away)


def _softmax(margins: Floats, codes: Integers) -> tuple[Floats, Floats]:
    known = (codes >= 0) & (codes < margins.shape[1])
    right = codes[:, None] == np.arange(margins.shape[1])
    losses = special.logsumexp(margins, axis=1) - np.sum(margins * right, axis=1)
    return np.where(known, losses, 0.0), np.where(known[:, None], special.softmax(margins, axis=1) - right, 0.0)


def _hinge_slope(margins: Floats) -> Floats:
    return -np.clip((1 + WIDTH - margins) / (2 * WIDTH), 0.0, 1.0)


_HINGE = link_table(_hinge_slope)


def _hinge_residuals(margins: Integers, codes: Integers) -> Integers:
    if margins.ndim == 1:
        return sign_residuals(margins, codes, _HINGE)
    known = (codes >= 0) & (codes < margins.shape[1])
    columns = [
        sign_residuals(margins[:, k], np.where(known, codes == k, -1).astype(np.int64), _HINGE)
        for k in range(margins.shape[1])
    ]
    return np.stack(columns, axis=1)


def _hinge(margins: Floats, codes: Integers) -> tuple[Floats, Floats]:
    signs = _signs(codes, margins.shape[1])
    away = signs * margins
    slope = np.where(signs == 0, 0.0, _hinge_slope(away))
    bend = np.square(np.clip(1 + WIDTH - away, 0.0, 2 * WIDTH)) / (4 * WIDTH)
    losses = bend + np.clip(1 - WIDTH - away, 0.0, None)
    return np.where(signs == 0, 0.0, losses).sum(axis=1), np.asarray(signs * slope, dtype=np.float64)


def _signs(codes: Integers, outputs: int) -> Integers:
    """+1 for the output of the right class, -1 for the others, 0 in all for a class that is none."""
    if outputs == 1:
        return np.where((codes == 0) | (codes == 1), 2 * codes - 1, 0)[:, None]
    signs = np.where(codes[:, None] == np.arange(outputs), 1, -1)
    return np.where(((codes >= 0) & (codes < outputs))[:, None], signs, 0)
