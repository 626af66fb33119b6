"""A small town made on the spot: a register with names, and a hospital's table from which the names were removed.

Nobody in it exists, so that the same seed may give the same town and a report may name those who were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from discreet.noise import SeededBits, uniform_below

PEOPLE, PATIENTS = 6_000, 1_500
QUASI = ("postcode", "birth", "sex")
DIAGNOSES = {"hypertension": 40, "diabetes": 25, "asthma": 20, "depression": 10, "epilepsy": 5}  # shares of 100

_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jana", "Kai", "Lea", "Max", "Nora")
_STARTS = ("Al", "Ber", "Cas", "Dor", "El", "Fal", "Gar", "Hol", "Is", "Jor", "Kel", "Lin", "Mar", "Nor")
_ENDS = ("berg", "croft", "dale", "feld", "gate", "ham", "kamp", "ley", "man", "ness", "rup", "sen", "ton", "wood")
_POSTCODES = tuple(f"{number:05}" for number in range(20410, 20420))
_OLDEST, _DAYS = date(1936, 1, 1), 80 * 365


@dataclass(frozen=True, slots=True)
class Person:
    """One line of the register, and what only the hospital knows."""

    number: int
    name: str
    postcode: str
    birth: date
    sex: str
    diagnosis: str


def town(people: int = PEOPLE, seed: int = 11) -> list[Person]:
    """The people of the town: the same for the same seed."""
    bits = SeededBits(seed)
    return [_person(number, bits) for number in range(people)]


def register(people: Sequence[Person]) -> list[dict[str, str]]:
    """What anybody can buy: names with addresses and dates of birth. The number only keeps score."""
    return [_known(person) | {"name": person.name} for person in people]


def hospital(people: Sequence[Person], patients: int = PATIENTS) -> list[dict[str, str]]:
    """What the hospital calls anonymous: everything but the name. The number only keeps score."""
    return [_known(person) | {"diagnosis": person.diagnosis} for person in people[:patients]]


def _known(person: Person) -> dict[str, str]:
    return {
        "number": str(person.number),
        "postcode": person.postcode,
        "birth": person.birth.isoformat(),
        "sex": person.sex,
    }


def _person(number: int, bits: SeededBits) -> Person:
    name = f"{_one(_FIRST, bits)} {_one(_STARTS, bits)}{_one(_ENDS, bits)}"
    birth = _OLDEST + timedelta(days=uniform_below(_DAYS, bits=bits))
    return Person(number, name, _one(_POSTCODES, bits), birth, _one("FM", bits), _diagnosis(bits))


def _one(choices: Sequence[str], bits: SeededBits) -> str:
    return choices[uniform_below(len(choices), bits=bits)]


def _diagnosis(bits: SeededBits) -> str:
    drawn = uniform_below(100, bits=bits)
    for name, share in DIAGNOSES.items():
        if drawn < share:
            return name
        drawn -= share
    return name
