"""Fields of forms and addresses, as messages of operations."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import FormData, QueryParams

from cloakgp.criteria import criteria_for
from cloakgp.privacy.noise import NOISES
from cloakgp.release.distribution_columns import DistributionColumns
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Choices, PrivacyBudget, TableView
from cloakgp.service.rules import rule_in_words
from cloakgp.utils.names import AUTO

# Labels of the fields of messages.
FIELD_NAMES = {
    "name": "name",
    "account": "account",
    "unit": "unit",
    "limit": "limit",
    "limit.epsilon": "limit, ε",
    "limit.delta": "limit, δ",
    "approval.epsilon": "approval above, ε",
    "approval.delta": "approval above, δ",
    "share.epsilon": "share, ε",
    "share.delta": "share, δ",
    "reason": "reason",
    "purpose": "purpose",
    "epsilon": "ε",
    "delta": "δ",
    "bounds": "bounds",
    "bounds.0": "lowest value",
    "bounds.1": "highest value",
    "days": "days",
    "roles": "roles",
}
# Fields of forms that have other names than those of messages joined.
FORM_FIELDS = {"bounds": "low", "bounds.0": "low", "bounds.1": "high", "limit": "limit_epsilon"}
NUMBERS = (
    "epsilon",
    "delta",
    "signal_variance",
    "noise_variance",
    "overdispersion",
    "mean",
    "inducing",
    "after",
    "band",
)
# Of these, whole ones.
WHOLE = ("inducing", "after")
# Numbers in whose place a word may be.
OR_AUTO = ("inducing", "band")
LISTS = ("lengthscale", "class_rates", "quantiles")
WORDS = ("noise", "criterion", "learn", "stages", "interval", "transform", "link", "exposure")
# Thousands to some, and decimals to others: pages separate thousands by commas themselves.
TWOFOLD = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
Fields = FormData | QueryParams


def text_of(fields: Fields, name: str) -> str:
    """Return a field's text without blanks around it, empty if there is none.

    Examples
    --------
    >>> text_of(QueryParams("a= 1 "), "a"), text_of(QueryParams(""), "a")
    ('1', '')
    """
    value = fields.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def number_of(text: str, *, called: str, field: str = "") -> float:
    """Return the number of a text, with a point or a comma; ``field`` is that of a form.

    Raises
    ------
    InvalidError
        If it is no number, or may be thousands as well as decimals.

    Examples
    --------
    >>> number_of("0,5", called="ε"), number_of("0,125", called="ε")
    (0.5, 0.125)
    >>> number_of("2,500", called="exposure")
    Traceback (most recent call last):
    ...
    cloakgp.service.errors.InvalidError: exposure may be 2500 or 2.500: write one of these
    """
    wrong = "must be a number"
    if TWOFOLD.fullmatch(text.strip()):
        wrong = f"may be {text.replace(',', '')} or {text.replace(',', '.')}: write one of these"
    else:
        with suppress(ValueError):
            return float(text.replace(",", "."))
    raise InvalidError(f"{called} {wrong}", fields={field: wrong} if field else {})


def distribution_of(fields: Fields) -> DistributionColumns:
    """Return what is asked of the distribution of new outputs; nothing by empty fields.

    Raises
    ------
    InvalidError
        If a field is no number, or a list of such with semicolons, or has no such meaning.

    Examples
    --------
    >>> distribution_of(QueryParams("coverage=90&quantiles=0,1;0.5&above="))
    DistributionColumns(interval=(0.9,), quantiles=(0.1, 0.5), above=())
    """
    coverage = numbers_of(fields, "coverage", called="coverage")
    try:
        return DistributionColumns.asked(
            interval=[each / 100 for each in coverage],
            quantiles=numbers_of(fields, "quantiles", called="quantiles"),
            above=numbers_of(fields, "above", called="above"),
        )
    except ValueError as error:
        raise InvalidError(str(error)) from None


def numbers_of(fields: Fields, name: str, *, called: str) -> list[float]:
    """Return the numbers of a field, with semicolons between them; none if it is empty.

    Raises
    ------
    InvalidError
        If they are no numbers.
    """
    text = text_of(fields, name)
    return [number_of(each, called=called, field=name) for each in text.split(";")] if text else []


def budget_of(fields: Fields, name: str) -> PrivacyBudget | None:
    """Return the budget of two fields, or None without an ε.

    Raises
    ------
    InvalidError

    Examples
    --------
    >>> budget_of(QueryParams("limit_epsilon=1&limit_delta="), "limit").pair
    (1.0, 0.0)
    """
    epsilon, delta = text_of(fields, f"{name}_epsilon"), text_of(fields, f"{name}_delta")
    if not epsilon:
        return None
    pair = {
        "epsilon": number_of(epsilon, called="ε", field=f"{name}_epsilon"),
        "delta": number_of(delta or "0", called="δ", field=f"{name}_delta"),
    }
    try:
        return PrivacyBudget(**pair)
    except ValidationError as error:
        wrong = {str(each["loc"][0]): rule_in_words(each) for each in error.errors()}
        raise InvalidError(
            "; ".join(f"{FIELD_NAMES[part]}: {words}" for part, words in wrong.items()),
            fields={f"{name}_{part}": words for part, words in wrong.items()},
        ) from None


def choices_of(fields: Fields) -> Choices:
    """Return the choices of an analyst; empty fields keep their defaults.

    Raises
    ------
    InvalidError, ValidationError

    Examples
    --------
    >>> choices_of(QueryParams("epsilon=0.5&delta=&inputs=age&inputs=sex")).inputs
    ['age', 'sex']
    >>> choices_of(QueryParams("epsilon=0.5&inducing=auto")).inducing
    'auto'
    >>> choices_of(QueryParams("epsilon=0.5&ticked=yes"))
    Traceback (most recent call last):
    ...
    cloakgp.service.errors.InvalidError: tick a public column at least, to predict from
    """
    values: dict[str, Any] = {}
    for name in NUMBERS:
        text = text_of(fields, name)
        if name in OR_AUTO and text == AUTO:
            values[name] = text
        elif text:
            called = FIELD_NAMES.get(name, name.replace("_", " "))
            number = number_of(text, called=called, field=name)
            values[name] = int(number) if name in WHOLE and number == int(number) else number
    for name in LISTS:
        if numbers := numbers_of(fields, name, called=name.replace("_", " ")):
            values[name] = numbers
    values |= {name: text for name in WORDS if (text := text_of(fields, name))}
    if calibrate := text_of(fields, "calibrate"):
        words = calibrate in ("auto", "off")
        values["calibrate"] = (
            calibrate if words else number_of(calibrate, called="rows kept out", field="calibrate")
        )
    values["counts"] = bool(text_of(fields, "counts"))
    values["inputs"] = [each for each in fields.getlist("inputs") if isinstance(each, str)]
    # A form without a tick would else mean all columns.
    if text_of(fields, "ticked") and not values["inputs"]:
        raise InvalidError("tick a public column at least, to predict from")
    return Choices.model_validate(values)


def fields_of(choices: Choices) -> list[tuple[str, str]]:
    """Return the fields of choices, for a form or an address.

    Examples
    --------
    >>> fields_of(Choices(epsilon=0.5, inputs=["age"]))[:3]
    [('epsilon', '0.5'), ('delta', '0.0'), ('inputs', 'age')]
    """
    fields: list[tuple[str, str]] = []
    for name, value in choices.model_dump(mode="json", exclude_none=True).items():
        if name == "inputs":
            fields += [(name, each) for each in value]
        elif isinstance(value, list):
            fields += [(name, ";".join(f"{each!r}" for each in value))] if value else []
        elif isinstance(value, bool):
            fields += [(name, "yes")] if value else []
        else:
            fields.append((name, str(value)))
    return fields


def noise_options() -> list[tuple[str, str]]:
    """Return the noises, and first the choice of the best by forecast."""
    return [("", "the best by forecast"), *((name, name.capitalize()) for name in NOISES)]


def options_for(table: TableView) -> list[tuple[str, str]]:
    """Return the criteria of a table, each with its use."""
    criteria = criteria_for("classes" if table.classes else "numbers")
    return [(each.name, each.option) for each in criteria]
