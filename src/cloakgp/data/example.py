"""Example tables: simulated people, to try the commands on. Nobody in them exists."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cloakgp.utils.arrays import Array
from cloakgp.utils.extras import extra

if TYPE_CHECKING:
    import pandas as pd

ROWS, NEW_ROWS, SEED = 400, 10, 2026
SURVEYED = dt.date(2026, 3, 2)
# Of a clinic's visitors: how many months, and how many people in each.
MONTHS, MONTH_ROWS = 4, 150
JOBS = ("clerk", "cook", "driver", "farmer", "nurse", "teacher")
# Of adults: what share did not say what they do.
UNSAID = 0.06
ADULT, OLDEST, YOUNGEST = 18, 89, 2
# Shares of households by how many people of them are in the table.
SIZES = (0.45, 0.25, 0.2, 0.1)
# Of hired bicycles: trips, and how many of them a rider made on average.
TRIPS, TRIPS_OF_RIDER = 300, 3
# A town: its middle in degrees, how far most places lie from it in kilometres, and those of a
# degree of latitude and of longitude there.
TOWN, SPREAD_KM, DEGREE_KM = (52.52, 13.405), 3.0, (111.2, 67.7)
TRIP_ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")
# Metres a second of a rider, and the longest trip before a bicycle counts as stolen, in seconds.
SPEED, LONGEST_TRIP = 4.0, 7200


def example_people(rows: int = ROWS, *, seed: int = SEED) -> pd.DataFrame:
    """Return a table of simulated people.

    Heights follow a growth curve in children and the sex in adults, with an sd of 6 cm in these;
    weights follow heights, and illness follows age and weight.

    Parameters
    ----------
    rows : int
        N.
    seed : int
        Public: equal seeds make equal tables.

    Returns
    -------
    pandas.DataFrame of N rows
        household (text), sex, job (text, with gaps), born (dates), age in years, weight in kg,
        height in cm, and ill (yes or no).

    Examples
    --------
    >>> people = example_people(3)
    >>> list(people)
    ['household', 'sex', 'job', 'born', 'age', 'weight', 'height', 'ill']
    """
    with extra("tables"):
        import pandas as pd
    rng = np.random.default_rng(seed)
    sizes = rng.choice(np.arange(1, len(SIZES) + 1), size=rows, p=SIZES)
    households = np.repeat(np.arange(1, rows + 1), sizes)[:rows]
    days = (365.25 * (YOUNGEST + (OLDEST - YOUNGEST) * rng.beta(1.3, 1.7, size=rows))).astype(int)
    age = np.floor(days / 365.25)
    woman = rng.uniform(size=rows) < 0.5
    height = _heights(age, woman) + rng.normal(size=rows) * np.where(age < ADULT, 4.5, 6.0)
    bmi = 15.5 + 9.0 * (1.0 - np.exp(-age / 20.0)) + rng.gamma(4.0, 0.9, size=rows) - 3.0
    odds = -4.5 + 0.05 * age + 0.08 * (bmi - 22.0)
    said = (age >= ADULT) & (rng.uniform(size=rows) >= UNSAID)
    job = np.where(said, rng.choice(JOBS, size=rows), "")
    return pd.DataFrame(
        {
            "household": [f"H{number:03d}" for number in households],
            "sex": np.where(woman, "woman", "man"),
            "job": pd.Series(job).mask(~said),
            "born": [SURVEYED - dt.timedelta(days=int(each)) for each in days],
            "age": age.astype(int),
            "weight": np.round(bmi * (height / 100.0) ** 2, 1),
            "height": np.round(height, 1),
            "ill": np.where(rng.uniform(size=rows) < 1.0 / (1.0 + np.exp(-odds)), "yes", "no"),
        }
    )


def example_care(rows: int = ROWS, *, seed: int = SEED) -> pd.DataFrame:
    """Return a table of other simulated people, with amounts and counts.

    Pay has a long tail; visits to a doctor are more the older people are, in the years in which
    each was observed.

    Parameters
    ----------
    rows : int
    seed : int

    Returns
    -------
    pandas.DataFrame of N rows
        age in years, visits in years that each person was observed, these years, pay a year, and
        the tariff: what a public table says of the pay of somebody of that age.

    Examples
    --------
    >>> list(example_care(3))
    ['age', 'years', 'visits', 'pay', 'tariff']
    """
    with extra("tables"):
        import pandas as pd
    rng = np.random.default_rng(seed + 2)
    age = rng.integers(ADULT, OLDEST, size=rows)
    years = rng.integers(1, 6, size=rows)
    rate = years * np.exp(-0.5 + age / 50.0)
    usual = np.exp(10.2 + 0.5 * np.sin((age - 18) / 20.0))
    pay = usual * np.exp(0.5 * rng.normal(size=rows))
    return pd.DataFrame(
        {
            "age": age,
            "years": years,
            "visits": rng.poisson(rate * rng.gamma(3.0, 1.0 / 3.0, size=rows)),
            "pay": np.round(pay, -1),
            "tariff": np.round(0.9 * usual, -2),
        }
    )


def example_months(
    count: int = MONTHS, *, rows: int = MONTH_ROWS, seed: int = SEED
) -> dict[str, pd.DataFrame]:
    """Return the tables of some months: simulated visitors of a clinic, each of whom came once.

    Minutes of waiting rise with age, and by month.

    Parameters
    ----------
    count : int
        From January 2026 on; at most 12.
    rows : int
        Of each month.
    seed : int

    Returns
    -------
    dict of str to pandas.DataFrame
        By the month, 2026-01: day, age and minutes of each visitor.

    Examples
    --------
    >>> list(example_months(2)), list(example_months(1)["2026-01"])
    (['2026-01', '2026-02'], ['day', 'age', 'minutes'])
    """
    with extra("tables"):
        import pandas as pd
    rng = np.random.default_rng(seed + 3)
    tables = {}
    for month in range(1, count + 1):
        first = dt.date(SURVEYED.year, month, 1)
        later = (dt.date(SURVEYED.year + month // 12, month % 12 + 1, 1) - first).days
        age = rng.integers(ADULT, OLDEST, size=rows)
        minutes = 10.0 + age / 2.0 + 2.0 * month + rng.gamma(4.0, 2.0, size=rows)
        days = np.sort(rng.integers(0, later, size=rows))
        tables[f"{first:%Y-%m}"] = pd.DataFrame(
            {
                "day": [first + dt.timedelta(days=int(each)) for each in days],
                "age": age,
                "minutes": np.round(minutes, 0).astype(int),
            }
        )
    return tables


def example_trips(rows: int = TRIPS, *, seed: int = SEED) -> pd.DataFrame:
    """Return simulated trips with hired bicycles, about three of each rider.

    Seconds grow with the distance, and have a long tail.

    Parameters
    ----------
    rows : int
    seed : int

    Returns
    -------
    pandas.DataFrame of N rows
        rider (text), start_lat, start_lon, end_lat and end_lon in degrees, and seconds.

    Examples
    --------
    >>> list(example_trips(2))
    ['rider', 'start_lat', 'start_lon', 'end_lat', 'end_lon', 'seconds']
    """
    with extra("tables"):
        import pandas as pd
    rng = np.random.default_rng(seed + 4)
    riders = rng.integers(0, max(rows // TRIPS_OF_RIDER, 1), size=rows)
    kilometres = SPREAD_KM * rng.normal(size=(rows, 2, 2))
    places = np.round(np.array(TOWN) + kilometres / np.array(DEGREE_KM), 5)
    distance = 1000.0 * np.hypot(*(kilometres[:, 1] - kilometres[:, 0]).T)
    seconds = (120.0 + distance / SPEED) * rng.lognormal(0.0, 0.35, size=rows)
    ends = dict(zip(TRIP_ENDS, places.reshape(rows, 4).T, strict=True))
    return pd.DataFrame(
        {
            "rider": np.char.add("R", riders.astype(str)),
            **ends,
            "seconds": np.minimum(seconds, LONGEST_TRIP).round().astype(int),
        }
    )


def _heights(age: Array, woman: NDArray[np.bool_]) -> Array:
    """Return mean heights in cm: to those of adults along a growth curve."""
    grown = np.where(woman, 165.0, 178.0)
    missing: Array = (grown - 84.0) * np.clip((ADULT - age) / (ADULT - YOUNGEST), 0.0, 1.0) ** 1.1
    return grown - missing


def new_people(rows: int = NEW_ROWS, *, seed: int = SEED) -> pd.DataFrame:
    """Return the public columns of further people, from whom nothing was asked.

    Parameters
    ----------
    rows : int
    seed : int

    Examples
    --------
    >>> list(new_people(2))
    ['sex', 'job', 'born', 'age', 'weight', 'years']
    """
    people = example_people(rows, seed=seed + 1)
    return people.drop(columns=["household", "height", "ill"]).assign(years=1)
