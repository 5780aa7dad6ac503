"""Fields of forms: text from browsers as what the operations take."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData, QueryParams

from cloakgp.criteria import criteria_for
from cloakgp.service.errors import InvalidError
from cloakgp.service.messages import Budget, Choices, TableView

# What the fields of messages are called on pages.
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
NUMBERS = ("epsilon", "delta", "signal_variance", "noise_variance", "mean", "inducing")
LISTS = ("lengthscale", "class_rates")
WORDS = ("noise", "criterion", "learn", "stages", "interval", "transform", "link")
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


def number_of(text: str, *, called: str) -> float:
    """Return the number that somebody wrote, with a point or a comma.

    Raises
    ------
    InvalidError
        If it is none.

    Examples
    --------
    >>> number_of("0,5", called="ε")
    0.5
    """
    try:
        return float(text.replace(",", "."))
    except ValueError:
        pass
    raise InvalidError(f"{called} must be a number")


def budget_of(fields: Fields, name: str) -> Budget | None:
    """Return the pair that two fields hold, or None if no ε is given.

    Raises
    ------
    InvalidError, ValidationError

    Examples
    --------
    >>> budget_of(QueryParams("limit_epsilon=1&limit_delta="), "limit").pair
    (1.0, 0.0)
    """
    epsilon, delta = text_of(fields, f"{name}_epsilon"), text_of(fields, f"{name}_delta")
    if not epsilon:
        return None
    return Budget(epsilon=number_of(epsilon, called="ε"), delta=number_of(delta or "0", called="δ"))


def choices_of(fields: Fields) -> Choices:
    """Return what an analyst chooses of a release; what is left empty is as usual.

    Raises
    ------
    InvalidError, ValidationError

    Examples
    --------
    >>> choices_of(QueryParams("epsilon=0.5&delta=&inputs=age&inputs=sex")).inputs
    ['age', 'sex']
    """
    given: dict[str, Any] = {}
    for name in NUMBERS:
        text = text_of(fields, name)
        if text:
            number = number_of(text, called=FIELD_NAMES.get(name, name.replace("_", " ")))
            given[name] = int(number) if name == "inducing" and number == int(number) else number
    for name in LISTS:
        text = text_of(fields, name)
        if text:
            called = name.replace("_", " ")
            given[name] = [number_of(each, called=called) for each in text.split(";")]
    given |= {name: text for name in WORDS if (text := text_of(fields, name))}
    given["inputs"] = [each for each in fields.getlist("inputs") if isinstance(each, str)]
    return Choices.model_validate(given)


def fields_of(choices: Choices) -> list[tuple[str, str]]:
    """Return the fields that hold choices, for a form or an address.

    Examples
    --------
    >>> fields_of(Choices(epsilon=0.5, inputs=["age"]))[:3]
    [('epsilon', '0.5'), ('delta', '0.0'), ('inputs', 'age')]
    """
    found: list[tuple[str, str]] = []
    for name, value in choices.model_dump(mode="json", exclude_none=True).items():
        if name == "inputs":
            found += [(name, each) for each in value]
        elif isinstance(value, list):
            found += [(name, ";".join(f"{each!r}" for each in value))] if value else []
        else:
            found.append((name, str(value)))
    return found


def options_for(table: TableView) -> list[tuple[str, str]]:
    """Return the criteria that go with a table, each with what it is for."""
    found = criteria_for("classes") if table.classes else criteria_for("numbers")
    return [(each.name, each.option) for each in found]
