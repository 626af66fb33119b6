"""People and ratings made for attacks, from a seed."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms

FIRST = dt.date(1940, 1, 1)


def people(count: int, *, seed: int = 1, areas: int = 30, years: int = 60, illnesses: int = 12) -> dict[str, Any]:
    """People whose postcode, birth date, sex and illness are independent; early illnesses are commoner."""
    bits = SeededBits(seed)

    def pick(choices: int) -> NDArray[np.intp]:
        return np.floor(uniforms(count, bits=bits) * choices).astype(np.intp)

    return {
        "id": list(range(count)),
        "zip": [f"{area // 10:03d}{area % 10}0" for area in pick(areas)],
        "birth": [str(FIRST + dt.timedelta(days=int(day))) for day in pick(365 * years)],
        "sex": ["FM"[sex] for sex in pick(2)],
        "illness": [f"illness {least}" for least in np.minimum(pick(illnesses), pick(illnesses))],
    }


def ratings(users: int, *, seed: int = 1, items: int = 2000, each: int = 25) -> dict[str, Any]:
    """Everybody rates so many items, popular ones more often, on days of their own."""
    bits = SeededBits(seed)
    drawn = np.floor(items * uniforms((users, 2 * each), bits=bits) ** 2).astype(np.intp)
    user, item = [], []
    for place, row in enumerate(drawn.tolist()):
        for label in list(dict.fromkeys(row))[:each]:
            user.append(place)
            item.append(label)
    stars, days = uniforms(len(user), bits=bits), uniforms(len(user), bits=bits)
    return {"user": user, "item": item, "rating": (np.floor(10 * stars) + 1) / 2, "day": np.floor(2000 * days)}
