"""Rules of messages in words: what is wrong with a request, and where, without what it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# By the names that pydantic has for them.
RULES = {
    "missing": "is missing",
    "extra_forbidden": "is no field of this request",
    "string_too_short": "must not be empty",
    "string_too_long": "has more than {max_length} characters",
    "string_type": "must be text",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number, and is too large",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "too_short": "has fewer than {min_length}",
    "too_long": "has more than {max_length}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object with names and values",
    "model_type": "must be an object with names and values",
    "model_attributes_type": "must be an object with names and values",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_pattern_mismatch": "has signs that it cannot have",
    "json_invalid": "is no JSON",
}
# What the way to an error begins with, by where in a request it is.
PARTS = ("body", "query", "path", "header", "cookie")
MUST = "must be "
# Of the name of a field that is shown: who sends it chose it.
LONGEST = 60
# Errors that are told.
MOST = 10
# Commands, up to the end of their part of a sentence; or an option of the command line, with the
# brackets around it; and options that requests call otherwise.
OPTION = re.compile(
    r"\bcloakgp [a-z][^,;:()]*|"
    r"(?P<before> \(|; )?(?<![\w'\"-])--(?P<name>[a-z]+(?:-[a-z]+)*)(?![\w-])(?P<after>\)?)"
)
CALLED = {"sql": "query", "output-transform": "transform"}


def rule_in_words(error: Mapping[str, Any]) -> str:
    """Return the rule of an error that pydantic found, without the value.

    Examples
    --------
    >>> rule_in_words({"type": "greater_than", "msg": "Input …", "ctx": {"gt": 0.0}})
    'must be more than 0'
    >>> rule_in_words({"type": "value_error", "msg": "Value error, This is odd"})
    'this is odd'
    """
    told = str(error["msg"]).removeprefix("Value error, ")
    rule = RULES.get(error["type"])
    return (
        f"{told[:1].lower()}{told[1:]}" if rule is None else rule.format_map(error.get("ctx", {}))
    )


def problems_in_words(errors: Sequence[Mapping[str, Any]], *, body: object) -> str:
    """Return what is wrong with a request, field by field, as the request names them.

    Parameters
    ----------
    errors : sequence of mappings
        As pydantic lists them.
    body : object
        Of the request; what it holds is not told, but for names of fields.

    Examples
    --------
    >>> problems_in_words(
    ...     [{"type": "float_parsing", "loc": ("body", "bounds", 0), "msg": "Input …"}],
    ...     body={"bounds": ["low", 5]},
    ... )
    'bounds[0] must be a number'
    """
    rules: dict[str, list[str]] = {}
    for error in errors:
        place = "the body" if error["type"] == "json_invalid" else _place(error["loc"], body)
        found = rules.setdefault(place, [])
        if (rule := rule_in_words(error)) not in found:
            found.append(rule)
    told = [f"{place} {_together(found)}" for place, found in rules.items()]
    return "; ".join(told[:MOST])


def as_requested(text: str) -> str:
    """Return a text with options of the command line as the fields of a request.

    Whole commands stay, and so do names within quotes.

    Examples
    --------
    >>> as_requested("--signal-variance must be positive")
    'signal_variance must be positive'
    >>> as_requested("missing_output (--missing-output) is 0")
    'missing_output is 0'
    >>> as_requested("no such folder (cloakgp serve --tables)")
    'no such folder (cloakgp serve --tables)'
    """
    return OPTION.sub(_as_field, text)


def _as_field(found: re.Match[str]) -> str:
    """Return an option as a field, once where the text before calls it so already."""
    if found["name"] is None:
        return found[0]
    before, name, after = found["before"] or "", found["name"], found["after"]
    field = CALLED.get(name, name.replace("-", "_"))
    if before and after and re.search(rf"\b{field}\b", found.string[: found.start()]):
        return after if before == "; " else ""
    return f"{before}{field}{after}"


def _place(loc: Sequence[str | int], body: object) -> str:
    """Return a way through a request, without the names of kinds that a field may have."""
    part, *ways = loc if loc and loc[0] in PARTS else ("body", *loc)
    known, shown = body, ""
    for way in ways:
        if isinstance(way, int):
            shown += f"[{way}]"
            known = known[way] if isinstance(known, list) and way < len(known) else None
        elif isinstance(known, dict) or part != "body":
            way = way if way.isprintable() and len(way) <= LONGEST else "…"
            shown += f".{way}" if shown else way
            known = known.get(way) if isinstance(known, dict) else None
    return shown or "the body"


def _together(rules: Sequence[str]) -> str:
    """Return the rules of one field, of which each may be that of another kind."""
    if len(rules) > 1 and all(rule.startswith(MUST) for rule in rules):
        return MUST + " or ".join(rule.removeprefix(MUST) for rule in rules)
    return ", or ".join(rules)
