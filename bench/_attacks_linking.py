"""Who a few columns, or a few ratings, single out: the United States, the Adult table and MovieLens.

- Uniqueness in the United States: people of 32,989 ZIP areas (2013), whose ages and sexes are assumed to follow the
  pyramid of the whole country (census of 2000, bands of five years), birthdays any day alike. The two published figures
  are for the census of 1990 and of 2000.
- Adult: everybody is looked up by age, sex, race and education, and the occupation guessed.
- MovieLens: 610 users. Of everybody a few ratings are known, drawn evenly without replacement from their own; dates are
  off by a whole number of days spread evenly over plus or minus 14, ratings are exact unless said otherwise; drawn anew
  ten times. Named rightly means: the best of 610 records is the right one and stands out by 1.5 standard deviations.
- Who is in MovieLens: a fair coin for each user, five rounds; from records, and from private counts and sums.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _claims import DATA, Claim, show

from discreet import attacks
from discreet.attacks.linkage.attacker_tables import columns_of
from discreet.noise import SeededBits

DRAWS, SEED = 10, 2026
KNOWN, DAYS = 8, 14
EPSILONS = (0.1, 1, 10)


def country() -> list[Claim]:
    areas = columns_of(DATA / "zcta" / "zcta_demographics_acs2013.csv.gz")
    population = {"zip": areas["zcta"], "people": areas["total_population"]}
    pyramid = columns_of(DATA / "zcta" / "us_population_by_age_sex_1850_2000.csv")
    rows = zip(*(pyramid[name] for name in ("year", "age", "sex", "people")), strict=True)
    ages = {(sex, int(age)): int(people) for year, age, sex, people in rows if year == "2000"}
    start = time.perf_counter()
    share = attacks.share_unique(population, ages=ages)
    spent = time.perf_counter() - start
    return [
        Claim("unique by ZIP area, birth date and sex", share, note=f"{len(areas['zcta']):,} areas"),
        Claim("published, census of 1990", 0.87, note="Sweeney 2000"),
        Claim("published, recomputed, census of 2000", 0.63, note="Golle 2006"),
        Claim("time for all areas", spent, unit="s"),
    ]


def adult() -> list[Claim]:
    table, quasi = columns_of(DATA / "adult" / "adult.csv.gz"), ["age", "sex", "race", "education"]
    alone = attacks.uniqueness(table, quasi)
    best = next(one for one in alone.coarsen if one.form != "dropped")
    found = attacks.uniqueness.compare(table, quasi, sensitive="occupation", epsilons=EPSILONS, bits=SeededBits(SEED))
    return [
        Claim("unique by age, sex, race and education", alone.success, note=f"{alone.targets:,} people"),
        Claim(f"with {best.column} in {best.form}", best.unique, note="the best way to keep all columns"),
        Claim("occupation told by a guess of the commonest", found.raw.baseline),
        *_compared(found, "occupation told"),
    ]


def movies() -> dict[str, Any]:
    table = columns_of(DATA / "movielens_latest_small" / "ratings.csv.gz")
    return {
        "user": table["userId"],
        "item": table["movieId"],
        "rating": table["rating"].astype(np.float64),
        "day": table["timestamp"].astype(np.float64) // 86_400,
    }


def named(ratings: dict[str, Any]) -> list[Claim]:
    """The scoreboard over all users, by what is known about them."""
    figures, bits = [], SeededBits(SEED)
    for error in (0.0, 1.0):
        draws, spent = [], []
        for _ in range(DRAWS):
            known = attacks.known_ratings(ratings, items=KNOWN, days=DAYS, rating_error=error, bits=bits)
            start = time.perf_counter()
            draws.append(attacks.scoreboard(ratings, known))
            spent.append(time.perf_counter() - start)
        rates, wrong = [found.success for found in draws], [found.wrong or 0.0 for found in draws]
        note = f"least of {DRAWS} draws {min(rates):.1%}, wrongly {np.mean(wrong):.2%}"
        stars = "exact ratings" if not error else f"ratings off by up to {error:g}"
        what = f"named rightly by {KNOWN} ratings, dates off by up to {DAYS} days, {stars}"
        figures.append(Claim(what, float(np.mean(rates)), least=None if error else 0.9, note=note))
        if not error:
            figures.append(Claim("time for 610 targets and 610 records", max(spent), most=60, unit="s", note="slowest"))
    start = time.perf_counter()
    attacks.scoreboard(ratings, ratings)
    figures.append(Claim("time with all 100,836 ratings known", time.perf_counter() - start, most=60, unit="s"))
    curve = attacks.scoreboard_by_items(ratings, items=(1, 2, 4, 8), days=(DAYS,), bits=bits)
    for (days, items), found in curve.findings.items():
        figures.append(Claim(f"named rightly by {items}, dates off by up to {days} days", found.success))
    return figures


def present(ratings: dict[str, Any]) -> list[Claim]:
    found = attacks.scoreboard.compare(ratings, items=KNOWN, days=DAYS, epsilons=EPSILONS, bits=SeededBits(SEED))
    return _compared(found, "rightly said to be in or not")


def _compared(found: attacks.Comparison, what: str) -> list[Claim]:
    """Rates on all releases; on a private one at most the bound, four standard errors of a share allowed."""
    figures = []
    for trial in found:
        finding, bound = trial.finding, trial.finding.bound
        most = None if bound is None else bound + 4 * (bound * (1 - bound) / finding.targets) ** 0.5
        note = "" if bound is None else f"the guarantee allows {bound:.1%}"
        figures.append(Claim(f"{what}: {trial.defence}", finding.success, most=most, note=note))
    return figures


def run() -> None:
    if not DATA.is_dir():
        print(f"No data in {DATA}: nothing is measured.")
        return
    show("Uniqueness in the United States", country())
    show("Adult: occupations looked up", adult())
    ratings = movies()
    show(f"MovieLens: whose record is it? {DRAWS} draws", named(ratings))
    show("MovieLens: who is in the data?", present(ratings))


if __name__ == "__main__":
    run()
