"""All worlds by name."""

from __future__ import annotations

from tests.corpus.world import World
from tests.corpus.worlds import census, clinic, school, shop

WORLDS: dict[str, World] = {made.name: made for made in (clinic.world(), shop.world(), school.world(), census.world())}
