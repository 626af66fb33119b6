"""The clinic that `discreet serve --demo` opens: its rows are synthetic, and protected like those of a real one."""

from __future__ import annotations

from pathlib import Path

from discreet.demo import clinic

ANALYST, STEWARD = "ana", "stella"
_WARDS = ", ".join(f'"{ward}"' for ward in clinic.WARDS)

TEXT = f"""\
# Made by `discreet serve --demo`: a clinic of synthetic patients.
ledger = "clinic.ledger"
anchor = "clinic.anchor"  # for real data, put it on another disk

[tables.visits]
source = "visits.csv"
unit = "patient"
account = "patients"
max_groups = 2
max_rows = 2

[tables.visits.types]
{"".join(f'{name} = "{kind}"' + chr(10) for name, kind in clinic.TYPES.items())}
[tables.visits.bounds]
age = [0, 100]
days = [0, {clinic.MOST_DAYS}]
charge = [0, {clinic.HIGHEST_CHARGE}]

[tables.visits.keys]
ward = [{_WARDS}]

[budgets.patients]
epsilon = "10"
delta = "1e-6"

[analysts.{ANALYST}.patients]
epsilon = "5"
delta = "5e-7"
"""


def make(folder: Path) -> Path:
    """Writes the clinic and its declarations, unless they are there, and returns the path of discreet.toml."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    config, table = folder / "discreet.toml", folder / "visits.csv"
    if not config.exists():
        clinic.write(table, clinic.visits())
        config.write_text(TEXT, encoding="utf-8")
    return config
