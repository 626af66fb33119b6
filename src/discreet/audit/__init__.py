"""Audits: lower bounds on the epsilon that a mechanism or a curator really has, next to the one it claims."""

from discreet.audit.mechanisms.distinguisher import distinguish, one_run
from discreet.audit.mechanisms.epsilon_bound import Audit, OneRun
from discreet.audit.mechanisms.exact_loss import ExactLoss, exact
from discreet.audit.mechanisms.goodness_of_fit import GoodnessOfFit, fits
from discreet.audit.mechanisms.training_run import training
from discreet.audit.queries.fit_audit import fit
from discreet.audit.queries.protected_tables import audit_table
from discreet.audit.queries.query_audit import query
from discreet.audit.queries.query_verdict import QueryAudit, QueryVerdict
from discreet.audit.queries.verdicts import Violation

__all__ = ["Audit", "ExactLoss", "GoodnessOfFit", "OneRun", "QueryAudit", "QueryVerdict", "Violation"]
__all__ += ["audit_table", "distinguish", "exact", "fit", "fits", "one_run", "query", "training"]
