"""Reports that are kept: a person who is asked again sends the same report, and repeating it reveals nothing new."""

from __future__ import annotations

import json
from typing import Any, Protocol

from discreet import check
from discreet.errors import InvalidParameter
from discreet.local.oracles.reports import Reports, canonical
from discreet.noise import Bits
from discreet.privacy.events import Event, Repeated

_HINT = "Pass the `state` of a PermanentResponse for the same oracle."


class Randomizer(Protocol):
    """What a client uses: any oracle of the local model."""

    @property
    def event(self) -> Event:
        """Returns what one report costs."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Returns its public parameters."""

    def privatize(self, values: Any, *, bits: Bits | None = None) -> Reports:
        """Returns a report for each value."""


class PermanentResponse:
    """A client that draws one report for each value it ever holds, at most `distinct` of them, and repeats it.

    Asked a hundred times without memory, a person sends a hundred reports whose average gives them away. With it they
    send one report a hundred times (the permanent response of RAPPOR: Erlingsson, Pihur, Korolova 2014).

    Args:
        oracle: whose reports are sent.
        distinct: how many different values are ever reported. When they are used up, the last new one is
            sent in the place of others.
        state: what `state` returned before; None if the person was never asked.

    Raises:
        InvalidParameter: if the state is of another oracle, or is none.

    Formal guarantee: with distinct = 1 all reports together, however many, are epsilon-DP for the first value, and do
    not depend on any later one at all. With more, they are distinct times epsilon-DP for the values, given when they
    changed; *that* a value changed, and when, is not hidden: the reports change with it. The state holds the values
    themselves: it stays with the person, and must be kept before a report is sent, because a report that was forgotten
    is drawn again and paid again.

    >>> from discreet.local import LocalHashing
    >>> client = PermanentResponse(LocalHashing(epsilon=1, domain=64))
    >>> first = client.report(17)
    >>> again = PermanentResponse(client.oracle, state=client.state).report(17)
    >>> first.rows.tolist() == again.rows.tolist()
    True
    >>> client.event
    Pure(epsilon=Fraction(1, 1))
    """

    def __init__(self, oracle: Randomizer, *, distinct: int = 1, state: str | None = None) -> None:
        self.oracle = oracle
        self.distinct = check.integer(distinct=distinct, at_least=1, at_most=10**6)
        self._kept: dict[str, Any] = {} if state is None else _read(state, canonical(oracle.parameters))
        if len(self._kept) > self.distinct:
            raise InvalidParameter("distinct", distinct, f">= {len(self._kept)}, the reports that the state holds")

    @property
    def event(self) -> Event:
        """Returns what all reports that will ever be sent cost together, given when the value changed."""
        return self.oracle.event if self.distinct == 1 else Repeated(self.oracle.event, self.distinct)

    @property
    def state(self) -> str:
        """Returns what the client must keep, as JSON; it is as private as the values."""
        return canonical({"kept": list(self._kept.items()), "parameters": self.oracle.parameters})

    @property
    def promise(self) -> str:
        """Returns in words what is protected, given what was reported so far."""
        told = f"{len(self._kept)} of at most {self.distinct} different values reported"
        if self.distinct == 1:
            return f"{told}. All reports, however many, cost as much as one. Later values are not reported."
        return f"{told}. Each value costs one report. Others can see that a value changed, and when."

    def report(self, value: Any, *, bits: Bits | None = None) -> Reports:
        """Returns the report of a value: a new one for a new value, the same as before for any other.

        Args:
            value: one value of the oracle's.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: if the oracle has no such value.
        """
        key = _key(value)
        if key not in self._kept and len(self._kept) < self.distinct:
            self._kept[key] = self.oracle.privatize([value], bits=bits).to_json()
        return Reports.from_json(self._kept[key if key in self._kept else next(reversed(self._kept))])


def _key(value: Any) -> str:
    plain = value.item() if hasattr(value, "item") else value
    if not isinstance(plain, str | int | float):
        raise InvalidParameter("value", type(plain).__name__, "to be one text or number")
    return json.dumps(plain)


def _read(state: str, parameters: str) -> dict[str, Any]:
    try:
        content = json.loads(check.instance(str, state=state))
        kept, tag = dict(content["kept"]), canonical(content["parameters"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidParameter("state", "a text", "to be the state of a client", _HINT) from None
    if tag != parameters:
        raise InvalidParameter("state", "a state", "to be for this oracle", _HINT)
    return kept
