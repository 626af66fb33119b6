"""The functions and operators of SQL that a question may use, each read into an expression of the plan.

Importing this package fills the table of `grammar`: every kind of node that a question may use is known then.
"""

from discreet.sql.functions import aggregates, casts, dates, operators, recorded_functions, regular_expressions, texts
from discreet.sql.functions.grammar import only, read, refuse_node

__all__ = ["aggregates", "casts", "dates", "operators", "recorded_functions", "regular_expressions", "texts"]
__all__ += ["only", "read", "refuse_node"]
