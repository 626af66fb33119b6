"""Functions of SQL that are written in terms of functions of the plan, each with one record in a file of its family."""

from discreet.plan.expressions.shorthands.date_shorthands import DATE_SHORTHANDS
from discreet.plan.expressions.shorthands.number_shorthands import NUMBER_SHORTHANDS
from discreet.plan.expressions.shorthands.shorthand import Shorthand
from discreet.plan.expressions.shorthands.text_shorthands import TEXT_SHORTHANDS

__all__ = ["DATE_SHORTHANDS", "NUMBER_SHORTHANDS", "SHORTHANDS", "TEXT_SHORTHANDS", "Shorthand"]

SHORTHANDS: tuple[Shorthand, ...] = (*NUMBER_SHORTHANDS, *TEXT_SHORTHANDS, *DATE_SHORTHANDS)
