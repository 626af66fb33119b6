"""What earlier answers tell for nothing: the same release again, or what follows from several. Nothing is read."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

from discreet.curator.asking.performer import Told
from discreet.curator.asking.planner import Preparing
from discreet.curator.measurement_plan import Prepared
from discreet.curator.replay.derivation import Derived, derive, may_follow
from discreet.curator.replay.stored_releases import Asked, area
from discreet.errors import UnsupportedQuery
from discreet.exact import root_above
from discreet.ledger import Stored
from discreet.ledger.serialization import at_most
from discreet.measurement.program.execution import Released
from discreet.plan.canonical import recall
from discreet.plan.model.schema import Limits
from discreet.privacy import Loss


class Recalling(Preparing):
    """Finds answers in the book; whether one is found depends on released values and declarations alone."""

    def _free(self, prepared: Prepared, asked: Asked) -> Told | None:
        """What was released before, or follows from it, if it is as good as what was asked for."""
        known = self._stored(prepared, asked)
        if known is not None:
            return known
        derived = self._derived(prepared, asked)
        if derived is None or derived.excess > 1:
            return None
        return Told(released=derived, facts=prepared.facts, event=derived.event)

    def _offer(self, prepared: Prepared, asked: Asked) -> str | None:
        """What earlier answers tell for nothing, in words: as precisely as asked for, or less."""
        if self._free(prepared, asked) is not None:
            return "Earlier answers tell this as precisely: ask, and nothing is charged."
        derived = self._derived(prepared, asked)
        if derived is None or not derived.excess:
            return None
        largest = asked.epsilon / root_above(derived.excess)
        for part in (Fraction(99, 100), Fraction(1, 2)):
            cheaper = replace(asked, epsilon=Fraction(at_most(largest * part)))
            if self._free(prepared, cheaper) is not None:
                told = f"{math.sqrt(derived.excess):.3g} times the noise"
                return f"Earlier answers tell this with {told}: ask with epsilon={at_most(largest * part)} or less."
        return None

    def _caps(self, account: str, analyst: str, project: str) -> dict[str, Loss]:
        """What the caps leave that a question would count against beside the account's budget, by whose they are."""
        caps: dict[str, Loss] = {}
        if self._book.capped(analyst, account=account) is not None:
            caps[f"analyst {analyst}"] = self._book.balance(account, analyst=analyst).remaining.loss
        if project:
            caps[f"project {project}"] = self._book.balance(account, project=project).remaining.loss
        return caps

    def _derived(self, prepared: Prepared, asked: Asked) -> Derived | None:
        """The answer as it follows from releases about the same rows, however much noise it has."""
        if prepared.missing or prepared.plan.sets or prepared.plan.beside or prepared.plan.rest or prepared.plan.bands:
            return None
        wanted = prepared.program(asked, prepared.facts)
        start = area(wanted, prepared.tables(prepared.facts))
        found = (self._release_of(prepared, *kept) for kept in self._book.related(start))
        return derive(wanted.unsalted, [released.unsalted for released in found if released is not None])

    def _release_of(self, prepared: Prepared, question: str, stored: Stored) -> Released | None:
        """A release about the same rows, for another question."""
        other = recall(question, prepared.plan)
        if other is None or not may_follow(prepared.plan, other):
            return None
        groups_and_rows = json.loads(stored.payload).get("limits")
        if groups_and_rows is None:
            return None
        try:
            told = self._unpacked(replace(prepared.about(other), limits=Limits(*groups_and_rows)), stored.payload)
        except UnsupportedQuery:  # this version would refuse the question
            return None
        return None if told is None else told.released
