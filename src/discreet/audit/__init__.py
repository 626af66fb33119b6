"""Audits: lower bounds on the epsilon that a mechanism or a curator really has, beside the one it claims."""

from discreet.audit.canaries import one_run
from discreet.audit.distinguishing import distinguish
from discreet.audit.exactly import Exact, exact
from discreet.audit.finding import Audit, OneRun
from discreet.audit.fitting import Fit, fits
from discreet.audit.protected import protected
from discreet.audit.query_finding import Audited, QueryAudit
from discreet.audit.querying import query
from discreet.audit.training import fit
from discreet.audit.verdicts import Violation

__all__ = [
    "Audit",
    "Audited",
    "Exact",
    "Fit",
    "OneRun",
    "QueryAudit",
    "Violation",
    "distinguish",
    "exact",
    "fit",
    "fits",
    "one_run",
    "protected",
    "query",
]
