"""Audits: lower bounds on the epsilon that a mechanism or a curator really has, beside the one it claims."""

from discreet.audit.canaries import one_run
from discreet.audit.distinguishing import distinguish
from discreet.audit.exactly import Exact, exact
from discreet.audit.finding import Audit, OneRun
from discreet.audit.fitting import Fit, fits

__all__ = ["Audit", "Exact", "Fit", "OneRun", "distinguish", "exact", "fits", "one_run"]
