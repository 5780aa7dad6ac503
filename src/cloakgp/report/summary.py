"""Summary of a release for programs: numbers as numbers, under keys that stay.

The same facts as `cloakgp.report.describe` has them in words, of the raw columns of a table and in
their units. ``schemas/show.schema.json`` describes it as a JSON Schema, and ``plan.schema.json``
the plan of `cloakgp.fitting.release_plan`: keys may be added under another version, not within one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import singledispatch
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from cloakgp.columns import Schema
from cloakgp.columns.base import Column
from cloakgp.columns.categories import Category, OrderedCategory
from cloakgp.columns.dates import Date
from cloakgp.columns.numbers import Number
from cloakgp.columns.places import Place
from cloakgp.columns.vectors import Vector
from cloakgp.models.likelihoods import CountLikelihood, QuantileLikelihood
from cloakgp.privacy import Guarantee
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.guesses import right_guess
from cloakgp.privacy.noise_choice import however_priced
from cloakgp.privacy.questions import QUESTIONS
from cloakgp.release import Measurement, MultiOutputRelease, Release, StatisticsRelease
from cloakgp.release.bands import ROW_QUESTIONS
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.release.measurement import tables_of
from cloakgp.release.open import OpenedRelease
from cloakgp.report.columns import input_names
from cloakgp.report.controls import offsets
from cloakgp.report.describe import describe, of_people
from cloakgp.report.worth import accuracies
from cloakgp.utils.arrays import Array

VERSION = 1
DAY_MICROSECONDS = 86_400_000_000


def json_schema(name: Literal["show", "plan"]) -> str:
    """Return the JSON Schema of a summary, or of a plan, as text.

    Parameters
    ----------
    name : {"show", "plan"}

    Examples
    --------
    >>> import json
    >>> json.loads(json_schema("show"))["$id"]
    'urn:cloakgp:show:1'
    """
    return files("cloakgp.report").joinpath("schemas", f"{name}.schema.json").read_text("utf-8")


def summarise(release: OpenedRelease) -> dict[str, Any]:
    """Return the facts about a release as plain values, and in words behind them.

    Parameters
    ----------
    release : Release or any other kind of release

    Examples
    --------
    >>> from cloakgp import DPGPRegressor
    >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    >>> told = summarise(model.release_)
    >>> round(told["guarantee"]["epsilon"], 3), told["outputs"][0]["bounds"], told["rows"]
    (1.0, [0.0, 1.0], [3])
    """
    return {
        "version": VERSION,
        "kind": release.kind,
        "insecure": release.insecure,
        **_facts(release),
        "accuracy": [
            {
                "output": each.output,
                "typical_error": each.new_error,
                "typical_error_between": None if each.between is None else list(each.between),
                "typical_error_between_with_clipped_values": None
                if each.with_clipped is None
                else list(each.with_clipped),
                "typical_error_with_far_values": each.far,
                "typical_error_of_a_constant": each.nothing,
                "typical_error_of_the_average": each.error,
                "before_the_first_question": each.without,
                "explained_share": each.share,
            }
            for each in accuracies(release)
        ],
        "words": [
            {
                "title": section.title,
                "technical": section.technical,
                "facts": [asdict(fact) for fact in section.facts],
            }
            for section in describe(release)
        ],
    }


@singledispatch
def _facts(release: object) -> dict[str, Any]:
    """Return what kinds of releases hold in different places."""
    raise TypeError(f"{type(release).__name__} is no release")


@_facts.register
def _of_release(release: Release) -> dict[str, Any]:
    likelihood = release.likelihood
    kind = "classes" if release.class_labels else "numbers"
    if isinstance(likelihood, QuantileLikelihood):
        kind = "quantiles"
    elif isinstance(likelihood, CountLikelihood):
        kind = "counts"
    ends = None if kind == "classes" else list(release.output_bounds)
    return {
        "outputs": [
            _output(
                release.output_name,
                kind,
                ends,
                transform=None if release.transform is None else release.transform.name,
                classes=list(release.classes) if kind == "classes" else None,
                quantiles=list(likelihood.quantiles)
                if isinstance(likelihood, QuantileLikelihood)
                else None,
            )
        ],
        "inputs": _inputs(release.schema, input_names(release), release.input_ranges),
        **_rows(release, 1),
        "guarantee": _guarantee(
            release.guarantee,
            protects=_protects(release, 1),
            visits=release.visits,
            limit=release.limit,
        ),
        "measurements": list(map(_measurement, release.measurements)),
        "provenance": None if release.provenance is None else asdict(release.provenance),
    }


@_facts.register
def _of_several(release: MultiOutputRelease) -> dict[str, Any]:
    entries, count = release.entries, len(release.columns.bounds)
    outputs = [
        _output(name, "numbers", [limits.lo, limits.hi])
        for name, limits in zip(release.names, release.columns.bounds, strict=True)
    ]
    return {
        "outputs": outputs,
        "inputs": _inputs(release.schema, input_names(release), entries.input_ranges[:, :-1]),
        **_rows(entries, count),
        "guarantee": _guarantee(
            release.guarantee,
            protects=_protects(entries, count),
            visits=entries.visits,
            limit=entries.limit,
        ),
        "measurements": list(map(_measurement, entries.measurements)),
        "provenance": None if release.provenance is None else asdict(release.provenance),
    }


@_facts.register
def _of_statistics(release: StatisticsRelease) -> dict[str, Any]:
    published = release.statistics
    return {
        "outputs": [
            _output(release.output_name, "numbers", list(release.bounds))
            if release.classes is None
            else _output(release.output_name, "classes", None, classes=list(release.classes.labels))
        ],
        "inputs": _inputs(release.schema, input_names(release), release.input_ranges),
        "rows": None if published.rows is None else [published.rows],
        "rows_in_file": False,
        "guarantee": _guarantee(release.guarantee, protects="row with its inputs"),
        "measurements": [],
        "provenance": None if release.provenance is None else asdict(release.provenance),
    }


@_facts.register
def _of_histogram(release: NoisyHistogram) -> dict[str, Any]:
    ends = np.array([[edges[0], edges[-1]] for edges in release.bins.edges]).T
    return {
        "outputs": [_output("y", "numbers", list(release.bounds))],
        "inputs": _inputs(None, input_names(release), ends),
        "rows": [int(release.counts.sum())],
        "rows_in_file": False,
        "guarantee": _guarantee(release.guarantee, protects="row"),
        "measurements": [],
        "provenance": None,
    }


def _output(
    name: str,
    kind: str,
    ends: list[float] | None,
    *,
    transform: str | None = None,
    classes: list[Any] | None = None,
    quantiles: list[float] | None = None,
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "bounds": None if ends is None else list(map(float, ends)),
        "transform": transform,
        "classes": classes,
        "quantiles": quantiles,
    }


def _inputs(schema: Schema | None, names: Sequence[str], ranges: Array) -> list[dict[str, Any]]:
    """Return the raw public columns, with the ranges of those that are numbers or dates."""
    if schema is None:
        return [
            _input(Number(name), lo=float(lo), hi=float(hi))
            for name, (lo, hi) in zip(names, ranges.T, strict=True)
        ]
    found = []
    for column, place in offsets(schema):
        ends: dict[str, Any] = {}
        if isinstance(column, Number):
            ends = {"lo": float(ranges[0, place]), "hi": float(ranges[1, place])}
        elif isinstance(column, Date) and column.linear:
            ends = {"first": _time(ranges[0, place]), "last": _time(ranges[1, place])}
        found.append(_input(column, **ends))
    return found


def _time(days: float) -> str:
    return str(np.datetime64(round(days * DAY_MICROSECONDS), "us").astype("datetime64[s]"))


def _input(
    column: Column,
    *,
    lo: float | None = None,
    hi: float | None = None,
    first: str | None = None,
    last: str | None = None,
) -> dict[str, Any]:
    categorical = isinstance(column, Category | OrderedCategory)
    return {
        "name": column.name,
        "title": column.title or column.name,
        "kind": column.kind,
        "unit": column.unit or None,
        "missing": column.missing,
        "columns": list(column.sources),
        "lo": lo,
        "hi": hi,
        "first": first,
        "last": last,
        "levels": list(column.levels) if categorical else None,  # type: ignore[attr-defined]
        "cycles": list(column.cycles) if isinstance(column, Date) else None,
        "centre": list(column.centre) if isinstance(column, Place) else None,
        "encoder": (column.encoder or None) if isinstance(column, Vector) else None,
    }


def _rows(release: Release, together: int) -> dict[str, Any]:
    strategies = tables_of(release.measurements).values()
    return {
        "rows": [strategy.n_rows // together for strategy in strategies],
        "rows_in_file": release.keeps_rows,
    }


def _protects(release: Release, together: int) -> str:
    """Return whose values are protected together: those of a row, or of all rows of a person."""
    strategies = tables_of(release.measurements).values()
    if together > 1:
        found = {of_people(strategy, count=together) for strategy in strategies}
    else:
        found = {strategy.grouped for strategy in strategies}
    return "row or person" if len(found) > 1 else "person" if found == {True} else "row"


def _guarantee(
    guarantee: Guarantee | MixedGuarantee,
    *,
    protects: str,
    visits: int = 1,
    limit: tuple[float, float] | None = None,
) -> dict[str, Any]:
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "protects": protects,
        "right_guess_at_most": right_guess(however_priced(guarantee, visits=visits)),
        "visits": visits,
        "limit": None if limit is None else {"epsilon": limit[0], "delta": limit[1]},
    }


def _measurement(one: Measurement) -> dict[str, Any]:
    names = {kind: name for name, kind in (QUESTIONS | ROW_QUESTIONS).items()}
    certificate, answers = one.strategy.certificate, one.answers
    gap = certificate.gap
    return {
        "table": one.strategy.table,
        "question": names[type(one.question)],
        "answers": int(answers.values.size),
        "noise": answers.noise,
        "noise_sd": answers.noise_sd,
        "epsilon": one.guarantee.epsilon,
        "delta": one.guarantee.delta,
        "criterion": certificate.criterion,
        "gap": gap if math.isfinite(gap) else None,
    }
