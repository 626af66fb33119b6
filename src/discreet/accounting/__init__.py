"""What releases cost together: tight for lists fixed beforehand, safe for choices made on the way.

`epsilon`, `delta` and `trade_off` take the least over basic, optimal homogeneous, zCDP, RDP, GDP and PLD composition.
`Filter` and `Odometer` serve an analyst who chooses the next release after seeing the last. Calibration ends on the
safe side.
"""

from discreet.accounting.bounds import delta, epsilon, methods, trade_off
from discreet.accounting.calibration import calibrate, concentrated_sigma, discrete_gaussian_sigma, gaussian_sigma
from discreet.accounting.filters import Filter, Odometer, RenyiFilter
from discreet.accounting.rdp import ORDERS
from discreet.accounting.risk import Risk, risk
from discreet.accounting.shuffle import shuffled_delta, shuffled_epsilon

__all__ = ["ORDERS", "Filter", "Odometer", "RenyiFilter", "Risk"]
__all__ += ["calibrate", "concentrated_sigma", "delta", "discrete_gaussian_sigma", "epsilon", "gaussian_sigma"]
__all__ += ["methods", "risk", "shuffled_delta", "shuffled_epsilon", "trade_off"]
