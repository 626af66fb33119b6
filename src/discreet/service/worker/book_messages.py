"""What the book says, as JSON between the owner and its workers: receipts, stored answers and caps, exactly."""

from __future__ import annotations

from typing import Any

from discreet.ledger import Receipt
from discreet.ledger.account import AccountState
from discreet.ledger.serialization import read_loss, write_loss
from discreet.ledger.store.base import Stored
from discreet.privacy import Loss, events


def write_receipt(receipt: Receipt) -> dict[str, Any]:
    """Returns a receipt as JSON fields."""
    return {
        "sequence": receipt.sequence,
        "account": receipt.account,
        "analyst": receipt.analyst,
        "event": events.to_json(receipt.event),
        "cost": write_loss(receipt.cost),
        "rest": receipt.rest,
        "hash": receipt.hash,
        "state": receipt.state.write(),
        "repeated": receipt.repeated,
        "claim": receipt.claim,
    }


def read_receipt(fields: dict[str, Any]) -> Receipt:
    """Returns the receipt that `write_receipt` wrote."""
    return Receipt(
        **{
            **fields,
            "event": events.from_json(fields["event"]),
            "cost": read_loss(fields["cost"]),
            "state": AccountState.read(fields["state"]),
        }
    )


def write_stored(stored: Stored) -> list[Any]:
    """Returns a stored answer as a list; what answers are stored as is text."""
    return [stored.sequence, stored.charge, stored.replay_key, stored.payload.decode(), stored.event]


def read_stored(fields: list[Any]) -> Stored:
    """Returns the stored answer that `write_stored` wrote."""
    sequence, charge, replay_key, payload, event = fields
    return Stored(sequence, charge, replay_key, payload.encode(), event)


def write_cap(cap: Loss | None) -> dict[str, str] | None:
    """Returns an amount or none."""
    return None if cap is None else write_loss(cap)


def read_cap(fields: dict[str, str] | None) -> Loss | None:
    """Returns the amount that `write_cap` wrote."""
    return None if fields is None else read_loss(fields)
