"""A charged question at work: probes first, where facts are missing, then the question itself.

Called after the charge, never before. The plan of a stage depends only on what earlier stages released.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.curator.asking.found import written
from discreet.curator.measurement_plan import Prepared, Settled, of_each_probe
from discreet.curator.replay.stored_releases import Asked, pack, replay_key, unpack
from discreet.errors import InternalError
from discreet.ledger import Account, Book, Receipt
from discreet.ledger.tallies import prices
from discreet.measurement.probes.probes import Facts, Probe
from discreet.measurement.program.execution import Reader, Released, run
from discreet.measurement.releases.releaser import Releaser
from discreet.plan.canonical import canonical
from discreet.privacy import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What may be shown: a release or what follows from some, the facts it rests on, and all that was released.

    Args:
        released: the release.
        facts: what was found out before.
        event: all that was released.
        former: whether it was made on the grid of earlier versions.
    """

    released: Released
    facts: Facts
    event: events.Event
    former: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """What a charge paid for, and how the book keeps it."""

    told: Told
    place: str
    payload: str


def perform(
    prepared: Prepared, asked: Asked, receipt: Receipt, *, engine: Reader, releaser: Releaser, book: Book
) -> Performance:
    """Reads for a charge, stage by stage, and adds noise.

    What a probe released is kept at once, so that nobody pays for it again, even if this question fails. A charge that
    is run again spends what it was made for, whatever was found out since: the share of its probes is spent.
    """
    paid = prepared.probes_paid(asked, receipt.event) if receipt.claim else len(prepared.missing)
    epsilon, facts = of_each_probe(asked, max(paid, 1)), prepared.facts
    for probe in prepared.missing:
        seen = run(probe.program(epsilon), engine, releaser)
        seen = _kept(probe, seen, Asked(epsilon, Fraction(0)), receipt, book, private=releaser.bits.private)
        facts = facts.having(probe, probe.found(seen))
    account = book.account(receipt.account)
    settled = _settled(prepared, asked, facts, account, probed=paid > 0)
    released = [probe.program(epsilon).event for probe in prepared.probes[:paid]]
    event = events.Composed([*released, settled.program.event]) if released else settled.program.event
    if receipt.claim and not costs_no_more(event, receipt.event, account):
        raise InternalError("A question that is run again would cost more than it was charged with.")
    main = run(settled.program, engine, releaser)
    return Performance(
        told=Told(released=main, facts=settled.facts, event=event),
        place=prepared.place(settled.program, settled.facts),
        payload=pack(main, settled.asked, private=releaser.bits.private, beside=written(settled, asked)),
    )


def _settled(prepared: Prepared, asked: Asked, facts: Facts, account: Account, *, probed: bool) -> Settled:
    """The question's own program, from what probes leave if the charge was made for some."""
    if not probed:
        return Settled(program=prepared.program(asked, facts), asked=asked, facts=facts)
    return prepared.settled(asked, facts, lambda event, promise: costs_no_more(event, promise, account))


def costs_no_more(event: events.Event, promise: events.Event, account: Account) -> bool:
    """Whether an event costs at most what was promised, under every rule of an account that has a price for that."""
    actual, charged = (prices(each, account.budget, account.neighbours) for each in (event, promise))
    return actual.covered(charged)


def _kept(probe: Probe, released: Released, asked: Asked, receipt: Receipt, book: Book, *, private: bool) -> Released:
    """What a probe released, kept under a place of its own; if its charge was run before, what was kept then.

    Raises:
        InternalError: if what was kept then cannot be read.
    """
    place, payload = replay_key(released.program, probe.tables), pack(released, asked, private=private)
    kept = book.store_beside(receipt, place, payload, question=canonical(released.program.question))
    if kept == payload.encode():
        return released
    first = unpack(kept, lambda epsilon, _: probe.program(epsilon), private=private)
    if first is None:
        raise InternalError("What was released for a charge cannot be read.")
    return first
