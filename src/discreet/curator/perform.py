"""A charged question at work: scouts first, where facts are missing, then the question itself.

Called after the charge, never before. The plan of a stage depends only on what earlier stages released.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from discreet.curator.door import Door
from discreet.curator.found import written
from discreet.curator.prepared import Prepared, Settled, of_each_scout
from discreet.curator.run import Reader, Released, run
from discreet.curator.scouts import Facts, Scout
from discreet.curator.stored import Asked, pack, replay_key
from discreet.errors import AccountLocked
from discreet.ledger import Account, Book, Receipt
from discreet.ledger.tallies import prices
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
    prepared: Prepared, asked: Asked, receipt: Receipt, *, engine: Reader, door: Door, book: Book
) -> Performance:
    """Reads for a charge, stage by stage, and adds noise.

    What a scout released is kept at once, so that nobody pays for it again, even if this question fails.
    """
    facts, released = prepared.facts, []
    for scout in prepared.missing:
        epsilon = of_each_scout(asked, len(prepared.missing))
        seen = run(scout.program(epsilon), engine, door)
        found = scout.found(seen)
        if found is not None:
            with suppress(AccountLocked):  # whose credits ran out meanwhile gets the answer they paid for
                _remember(scout, seen, epsilon, receipt, book, private=door.bits.private)
        facts = facts.having(scout, found)
        released.append(seen.program.event)
    settled = _settled(prepared, asked, facts, book.account(receipt.account))
    main = run(settled.program, engine, door)
    event = events.Composed([*released, main.program.event]) if released else main.program.event
    return Performance(
        told=Told(released=main, facts=settled.facts, event=event),
        place=prepared.place(settled.program, settled.facts),
        payload=pack(main, settled.asked, private=door.bits.private, beside=written(settled, asked)),
    )


def _settled(prepared: Prepared, asked: Asked, facts: Facts, account: Account) -> Settled:
    if not prepared.missing:
        return Settled(program=prepared.program(asked, facts), asked=asked, facts=facts)
    return prepared.settled(asked, facts, lambda event, promise: costs_no_more(event, promise, account))


def costs_no_more(event: events.Event, promise: events.Event, account: Account) -> bool:
    """Whether an event costs at most what was promised, under every rule of an account that has a price for that."""
    actual, charged = (prices(each, account.budget, account.neighbours) for each in (event, promise))
    return actual.covered(charged)


def _remember(
    scout: Scout, released: Released, epsilon: Fraction, receipt: Receipt, book: Book, *, private: bool
) -> None:
    """Keeps what a scout released under a place of its own: an entry that costs nothing, for nothing is read for it."""
    question = canonical(released.program.question)
    entry = book.charge(receipt.account, events.Composed([]), analyst=receipt.analyst, question=question)
    place = replay_key(released.program, scout.tables)
    book.store_answer(entry, place, pack(released, Asked(epsilon, Fraction(0)), private=private))
