"""A custodian's form says what the table does not: what a sign between digits means."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from cloakgp.columns import infer_schema, schema_from_text, schema_to_text
from cloakgp.service.errors import InvalidError
from cloakgp.service.pages.schemas import schema_text_of


@pytest.mark.parametrize("sign", [",", "."])
def test_what_a_sign_between_digits_means_is_said_by_the_form(sign):
    cells = [f"51{sign}082", "463"]
    seen = schema_to_text(infer_schema({"area": cells}, ["area"]))
    for said, value in [("decimals", 51.082), ("thousands", 51082.0)]:
        made = schema_from_text(schema_text_of(seen, QueryParams(f"notation_0={said}")))
        made = made.complete({"area": cells})
        made.validate()
        assert made.encode({"area": cells}).X.tolist() == [[value], [463.0]]
    with pytest.raises(InvalidError, match=rf"say what 1\{sign}234 is") as refused:
        schema_text_of(seen, QueryParams(""))
    assert list(refused.value.fields) == ["notation_0"]
    assert schema_from_text(schema_text_of(seen, QueryParams("kind_0=category"))).columns
