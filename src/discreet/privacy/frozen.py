"""How a frozen dataclass stores the exact form of what it was given."""

from __future__ import annotations


def assign(target: object, **fields: object) -> None:
    """Sets the fields of a frozen object while it is being built, and never later.

    Our frozen classes write their own ``__init__`` because it takes any `check.Number` and keeps a Fraction: the
    signature then says what may be passed and the field says what is kept.
    """
    for name, value in fields.items():
        object.__setattr__(target, name, value)
