"""Messages: what is sent to the service, and what it answers.

Nothing that is answered is made from a private column, but for releases, whose noise protects it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from cloakgp.privacy.spending import Unit
from cloakgp.service.access import Role
from cloakgp.service.models import JobState, RequestState
from cloakgp.utils.names import Estimate, LinkName, NoiseChoice, TransformName

# A positive δ below this is none that anybody can tell from 0.
SMALLEST_DELTA = 1e-30


def _zero_or_usual(delta: float) -> float:
    if 0 < delta < SMALLEST_DELTA:
        raise ValueError(f"take 0, or at least {SMALLEST_DELTA:g}")
    return delta


Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f/]*[^\s\x00-\x1f/]$"),
]
# Of a row; those of PostgreSQL and SQLite have 64 bits, and those of JavaScript 53.
Id = Annotated[int, Field(ge=1, le=2**53)]
Line = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
Text = Annotated[str, StringConstraints(max_length=100_000, pattern=r"^[^\x00]*$")]
# Beyond these nobody asks, and sums lose their meaning.
Epsilon = Annotated[float, Field(ge=1e-6, le=100, allow_inf_nan=False)]
Total = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False), AfterValidator(_zero_or_usual)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def moment(seconds: int) -> datetime:
    """Return a time of the database.

    Examples
    --------
    >>> moment(0).isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC)


class Message(BaseModel):
    """Data that is sent; what is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Budget(Message):
    """A pair (ε, δ)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"epsilon": 1.0, "delta": 1e-6}]})

    epsilon: Total
    delta: Delta = 0.0

    @property
    def pair(self) -> tuple[float, float]:
        """As a tuple."""
        return self.epsilon, self.delta


class Problem(Message):
    """Why something was not done."""

    kind: str
    message: str


class NewTable(Message):
    """A table that is to be registered, and what is declared of it without looking at it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "heights 2024",
                    "account": "patients 2024",
                    "upload": "3f0c2a9b7d5e41668a90b1c2d3e4f506",
                    "output": "height",
                    "bounds": [40, 200],
                }
            ]
        }
    )

    name: Name
    account: Name
    note: Text = ""
    upload: str = Field(default="", description="What `PUT /uploads/{name}` answered; or a path.")
    path: Line = Field(default="", description="In one of the folders that the service may read.")
    query: Text = Field(default="", description="Of a database.")
    output: Name = Field(description="The private column.")
    inputs: list[Name] = Field(
        default=[], description="Public columns; all but the private if empty."
    )
    table_schema: Text = Field(
        default="", description="Table Schema of the public columns; inferred if empty."
    )
    bounds: tuple[Finite, Finite] | None = Field(default=None, description="Of a private number.")
    classes: list[Name] = Field(default=[], description="Of a private class.")
    person: Line = Field(default="", description="Public column that says whose each row is.")
    missing_output: Line = "refuse"


class Look(Message):
    """A table that is to be looked at before it is registered; the private columns are not."""

    upload: str = ""
    path: Line = ""
    query: Text = ""
    private: list[Name] = []


class Looked(Message):
    """Names of a table's columns, and a first schema of those that are public."""

    columns: list[str]
    table_schema: str
    described: dict[str, str]


class UploadView(Message):
    """A file that was sent."""

    id: str
    name: str
    size: int


class TableView(Message):
    """A registered table, as everybody may know it who may ask for releases of it."""

    id: int
    name: str
    account: str
    note: str
    output: str
    bounds: tuple[float, float] | None
    classes: list[str]
    inputs: list[str]
    described: dict[str, str]
    table_schema: str
    person: str
    missing_output: str
    rows: int
    registered_by: str
    created: datetime
    withdrawn: bool


class NewAccount(Message):
    """An account of a population."""

    name: Name
    unit: Unit = "row"
    limit: Budget
    approval: Budget | None = Field(
        None, description="What one analyst may spend before others must approve; nothing if not."
    )
    share: Budget | None = Field(default=None, description="What one analyst may spend at all.")


class NewLimit(Message):
    """Another limit of an account."""

    limit: Budget
    reason: Annotated[Line, StringConstraints(min_length=1)]


class NewRules(Message):
    """Rules of an account."""

    approval: Budget | None = None
    share: Budget | None = None


class AccountView(Message):
    """What was spent of an account; amounts are ε at the limit's δ."""

    name: str
    unit: str
    limit: Budget
    spent: float
    held: float = Field(description="By requests that are not decided or made yet.")
    left: float = Field(description="The ε of one more release that there is room for.")
    charges: int
    open: list[int]
    approval: Budget | None
    share: Budget | None
    mine: float | None = Field(description="What the requests of whoever asks add up to.")


class Choices(Message):
    """What an analyst chooses of a release; all of it is public, and none may be a leak."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"epsilon": 0.5, "delta": 1e-6, "inputs": ["age"]}]}
    )

    epsilon: Epsilon
    delta: Delta = 0.0
    inputs: list[Name] = Field(default=[], description="All public columns if empty.")
    noise: NoiseChoice = "auto"
    criterion: Name = "bayes"
    learn: Literal["map", "average", "none"] = "map"
    inducing: Annotated[int, Field(ge=1, le=5000)] | None = None
    lengthscale: list[Positive] = []
    signal_variance: Positive | None = None
    noise_variance: Positive | None = None
    mean: Finite | None = None
    stages: Literal["auto", "one"] = "auto"
    interval: Literal["auto", "off"] = "auto"
    transform: TransformName | None = None
    class_rates: list[Positive] = []
    link: LinkName | None = None


class PlanRequest(Message):
    """A release that is to be planned."""

    table: Id
    choices: Choices
    epsilons: list[Epsilon] = Field(
        default=[], max_length=10, description="Others to compare with."
    )


class FactView(Message):
    """One thing to know, and what it is called."""

    label: str
    text: str


class SectionView(Message):
    """Facts under one heading."""

    title: str
    technical: bool = False
    facts: list[FactView]


class PlanView(Message):
    """A release before it is made; nothing private was read, and nothing spent."""

    facts: list[FactView]
    budgets: list[list[str]]
    plan: dict[str, Any]
    releases_left: int = Field(description="How many such releases the account has room for.")
    mine_left: int | None = Field(description="How many of them your share has room for.")
    needs_approval: bool


class NewRequest(Message):
    """A release that is asked for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"table": 1, "choices": {"epsilon": 0.5, "delta": 1e-6}, "purpose": "figure 3"}
            ]
        }
    )

    table: Id
    choices: Choices
    purpose: Annotated[Line, StringConstraints(min_length=1)]


class Decision(Message):
    """Why a request is approved or rejected."""

    remark: Line = ""


class JobView(Message):
    """The making of a release."""

    id: int
    request: int
    state: JobState
    step: str
    share: float | None
    failure: str
    attempts: int
    created: datetime
    finished: datetime | None


class RequestView(Message):
    """A release that was asked for, and what came of it."""

    id: int
    table: int
    table_name: str
    account: str
    person: str
    purpose: str
    choices: Choices
    needs_approval: bool
    state: RequestState
    decided_by: str | None
    decided: datetime | None
    remark: str
    created: datetime
    job: JobView | None
    release: int | None


class ReleaseView(Message):
    """A release that was made."""

    id: int
    request: int
    table: int
    table_name: str
    output: str
    person: str
    purpose: str
    epsilon: float
    delta: float
    digest: str
    size: int
    charge: int
    created: datetime


class PredictRequest(Message):
    """Where to predict."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"rows": [{"age": 30, "weight": 60.5}]}]}
    )

    rows: list[dict[str, str | float | int | bool | None]] = Field(min_length=1)
    new_output: bool = Field(
        default=False, description="Limits for a new output, not for the curve alone."
    )
    estimate: Estimate = "median"


class Predictions(Message):
    """Predictions, a row for each that was asked; null where there is none."""

    columns: list[str]
    rows: list[list[float | str | None]]


class NewPerson(Message):
    """Somebody who may use the service."""

    name: Name
    roles: list[Role]


class ChangedPerson(Message):
    """What is changed about somebody; what is not given stays."""

    roles: list[Role] | None = None
    active: bool | None = None


class PersonView(Message):
    """Somebody who may use the service."""

    id: int
    name: str
    roles: list[Role]
    active: bool
    created: datetime


class NewToken(Message):
    """A token that is to be issued."""

    label: Line = ""
    roles: list[Role] | None = Field(default=None, description="All of the person's if not given.")
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class TokenView(Message):
    """A token, without what makes it one."""

    id: int
    person: str
    hint: str
    label: str
    roles: list[Role]
    created: datetime
    expires: datetime
    revoked: bool
    used: datetime | None


class IssuedToken(Message):
    """A token that was issued: it is shown this once."""

    token: str
    about: TokenView


class Login(Message):
    """A browser that logs in."""

    token: Annotated[str, StringConstraints(max_length=200)]


class Me(Message):
    """Whoever is asking."""

    name: str
    roles: list[Role]
    operations: list[str]
    form_token: str


class EntryView(Message):
    """An entry of the ledger."""

    number: int
    body: dict[str, Any]
    digest: str


class AuditView(Message):
    """What an audit of the ledger found."""

    sound: bool
    entries: int
    digest: str
    findings: list[str]


class EventView(Message):
    """Something that was done to the service."""

    id: int
    when: datetime
    who: str
    what: str
    about: str


class Health(Message):
    """That the service answers."""

    status: Literal["ok"] = "ok"
    version: str
