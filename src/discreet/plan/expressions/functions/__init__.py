"""The functions a question may use: each with one defined, total meaning. What is not in this table does not exist.

Each has one record (`record.Function`) in the file of its family, and all else is derived from it.
"""

from discreet.plan.expressions.functions.conditions import CONDITIONS
from discreet.plan.expressions.functions.conversions import CONVERSIONS
from discreet.plan.expressions.functions.date_functions import DATES
from discreet.plan.expressions.functions.elementary import ELEMENTARY
from discreet.plan.expressions.functions.number_functions import ARITHMETIC
from discreet.plan.expressions.functions.record import LAST_DAY, LONGEST_TEXT, Function, Signature, Template
from discreet.plan.expressions.functions.text_functions import TEXTS

__all__ = ["FUNCTIONS", "LAST_DAY", "LONGEST_TEXT", "Function", "Signature", "Template"]

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for family in (ARITHMETIC, ELEMENTARY, CONDITIONS, CONVERSIONS, DATES, TEXTS)
    for function in family
}
"""All functions by name."""
