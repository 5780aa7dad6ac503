"""Messages of the service: its requests and its answers, as pydantic models.

No answer is made from a private column, except releases, whose noise protects it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from cloakgp.custodians.progress import Stage
from cloakgp.privacy.budgets import SMALLEST_DELTA, SMALLEST_EPSILON
from cloakgp.privacy.spending import Unit
from cloakgp.service.access import Role
from cloakgp.service.models import (
    JobState,
    ProposalKind,
    ProposalState,
    RequestState,
    TablePeople,
)
from cloakgp.utils.names import AUTO, Estimate, LinkName, TransformName


def _zero_or_usual(delta: float) -> float:
    if 0 < delta < SMALLEST_DELTA:
        raise ValueError(f"take 0, or at least {SMALLEST_DELTA:g}")
    return delta


Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f/]*[^\s\x00-\x1f/]$"),
]
# Of a column or a class, which no address holds: any printable text.
CellName = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")
]
# The number of a row: PostgreSQL and SQLite have 64 bits, and JavaScript 53.
Id = Annotated[int, Field(ge=1, le=2**53)]
# Where a list goes on.
After = Annotated[int, Field(ge=0, le=2**53)]
Before = Annotated[
    int | None, Field(ge=0, le=2**53, description="The number that all come before.")
]
Line = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
Text = Annotated[str, StringConstraints(max_length=100_000, pattern=r"^[^\x00]*$")]
# The largest ε of one release: beyond it, a guess is wrong once in 10⁸ times, and designs and
# accounting take minutes.
LARGEST_EPSILON = 20.0
MOST_INDUCING = 5000
# Beyond these ends, sums lose their meaning.
Epsilon = Annotated[float, Field(ge=SMALLEST_EPSILON, le=LARGEST_EPSILON, allow_inf_nan=False)]
Total = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False), AfterValidator(_zero_or_usual)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
KeptShare = Annotated[float, Field(gt=0, lt=0.5, allow_inf_nan=False)]
# Columns of each kind that can be asked for behind predictions, and quantiles of one fit.
MOST_COLUMNS, MOST_QUANTILES = 100, 20
MOST_COMBINED = 100
Quantiles = Annotated[
    list[Share],
    Field(max_length=MOST_COLUMNS, description="Of a new output: 0.1 gives q_10."),
]
Thresholds = Annotated[
    list[Finite],
    Field(
        max_length=MOST_COLUMNS,
        description="The probability that a new output is above each: 180 gives above_180.",
    ),
]
Coverage = Annotated[
    Share | None,
    Field(description="Of an interval for a new output: 0.9 gives lo_90 and hi_90."),
]
ExposureColumn = Annotated[
    Line,
    Field(description="Column with the exposure of each new count; if empty, 1 in each row."),
]


class Message(BaseModel):
    """A message, whose unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class View(Message):
    """A row of the database as callers may see it."""

    @classmethod
    def of(cls, row: object, **values: Any) -> Self:
        """Return the view of a row: its columns of the view's names.

        Parameters
        ----------
        row : object
        **values
            In the place of columns, or beside them.
        """
        shown = {name: getattr(row, name) for name in cls.model_fields if name not in values}
        return cls.model_validate(shown | values)


class PrivacyBudget(Message):
    """A pair (ε, δ)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"epsilon": 1.0, "delta": 1e-6}]})

    epsilon: Total
    delta: Delta = 0.0

    @property
    def pair(self) -> tuple[float, float]:
        """The budget as a tuple."""
        return self.epsilon, self.delta


class ErrorMessage(Message):
    """The reason of a refusal."""

    kind: str
    message: str


class NewTable(Message):
    """A table to register, and its declarations, which are made without a look at it."""

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
    upload: str = Field(
        default="", description="The id that `PUT /uploads/{name}` answered; or give a path."
    )
    path: Line = Field(
        default="", description="File in one of the folders that the service may read."
    )
    query: Text = Field(default="", description="SQL, for the file of a database.")
    output: CellName = Field(description="The private column.")
    inputs: list[CellName] = Field(
        default=[], description="Public columns; if empty, all columns but the private one."
    )
    table_schema: Text = Field(
        default="", description="Table Schema of the public columns; if empty, it is inferred."
    )
    bounds: tuple[Finite, Finite] | None = Field(
        default=None, description="Bounds of a private number."
    )
    classes: list[CellName] = Field(default=[], description="Classes of a private label.")
    person: Line = Field(default="", description="Public column that names the person of each row.")
    people: TablePeople = Field(
        default="overlapping",
        description="disjoint: nobody in it is in another such table of the account, so that each "
        "person pays for one of them. It is the custodian's word, which the ledger keeps; persons "
        "who are named by their columns are compared.",
    )
    missing_output: Line = "refuse"
    declared_public: list[CellName] = Field(
        default=[],
        description="Public columns that everybody may know though a private column of the account "
        "has the same values. It is the custodian's word, which the ledger keeps; without it such "
        "columns are refused, unless few different values are another custodian's.",
    )


class Look(Message):
    """A table to inspect before it is registered; its private columns are not read."""

    upload: str = ""
    path: Line = ""
    query: Text = ""
    private: list[CellName] = []
    public: list[CellName] = Field(
        default=[], description="The columns to read; all but the private ones if these are named."
    )


class ColumnPreview(Message):
    """A public column of a table that is not registered yet."""

    described: str
    gaps: float = Field(description="The share of its cells that are empty.")
    remarks: list[str]
    cells: list[str] = Field(description="Those of the first rows.")


class TablePreview(Message):
    """The names of a table's columns, and a first schema of the public ones."""

    columns: list[str]
    table_schema: str
    described: dict[str, str]
    rows: int | None = Field(default=None, description="That were read; none for names alone.")
    complete: bool = Field(default=True, description="Whether these are all rows.")
    public: dict[str, ColumnPreview] = {}


class UploadView(View):
    """An uploaded file."""

    id: str
    name: str
    size: int


class TableView(View):
    """A registered table, for everyone who may request releases of it."""

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
    people: TablePeople
    missing_output: str
    rows: int
    registered_by: str
    created: datetime
    withdrawn: bool


class NewAccount(Message):
    """An account of a population."""

    name: Name
    unit: Unit = "row"
    limit: PrivacyBudget
    approval: PrivacyBudget | None = Field(
        None,
        description="The most that one analyst may spend without approval; if missing, nothing.",
    )
    share: PrivacyBudget | None = Field(
        default=None, description="The most that one analyst may spend at all."
    )


class NewLimit(Message):
    """Another limit of an account."""

    limit: PrivacyBudget
    reason: Annotated[Line, StringConstraints(min_length=1)]


class NewRules(Message):
    """Rules of an account."""

    approval: PrivacyBudget | None = None
    share: PrivacyBudget | None = None


class NewShare(Message):
    """The most that one analyst may spend of an account; none for the share of all."""

    share: PrivacyBudget | None


class AccountView(View):
    """An account and the use of its limit.

    The limit holds at every moment. Its use is a share, from 0 to 1, of the filter that has most
    room left.
    """

    name: str
    unit: str
    limit: PrivacyBudget
    used: float = Field(description="Used share of the limit; 1 also where more was spent.")
    used_in_words: str = Field(
        description="What of the limit is used, in words, also where it was lowered below that."
    )
    beyond: list[str] = Field(
        description="Disjoint tables, and an empty name for everybody else, on whose people more "
        "was spent than the limit allows: nothing about them fits."
    )
    held: float = Field(description="The largest share that approved requests may still use.")
    left: float = Field(
        description="The largest ε of one more release, at the limit's δ and of any noise, for "
        "which the limit has room."
    )
    epsilon_if_fixed: float = Field(
        description="The ε of all charges together, at the limit's δ, if every price had been "
        "fixed before the first answer; otherwise no guarantee."
    )
    charges: int
    cohorts: dict[str, float] = Field(
        description="Used shares of the limit for the people of each disjoint table; nobody is in "
        "two of them, as their custodians say. The others' is the least of all."
    )
    open: list[int]
    approval: PrivacyBudget | None
    share: PrivacyBudget | None
    mine: float | None = Field(description="The caller's use of their own share, or of the limit.")


class ChangeView(Message):
    """The change of one budget of an account."""

    what: Literal["limit", "approval", "share"]
    before: PrivacyBudget | None
    after: PrivacyBudget | None


class ProposalView(View):
    """A change of an account that lets more be spent, after a second person confirms it."""

    id: int
    account: str
    kind: ProposalKind
    person: str = Field(description="The analyst whose share it changes; empty for other changes.")
    changes: list[ChangeView]
    reason: str
    proposed_by: str
    state: ProposalState
    decided_by: str | None
    decided: datetime | None
    created: datetime


class AccountChange(Message):
    """An account as it is now, and a proposal if a second person must confirm the change."""

    account: AccountView
    proposal: ProposalView | None = None


class Choices(Message):
    """An analyst's choices for a release, all of them public."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"epsilon": 0.5, "delta": 1e-6, "inputs": ["age"]}]}
    )

    epsilon: Epsilon
    delta: Delta = 0.0
    inputs: list[CellName] = Field(default=[], description="All public columns if empty.")
    noise: Name = Field(default=AUTO, description="A noise, or auto for the best by forecast.")
    criterion: Name = "bayes"
    learn: Literal["map", "average", "none"] = "map"
    inducing: Annotated[int, Field(ge=1, le=MOST_INDUCING)] | Literal["auto"] | None = None
    lengthscale: list[Positive] = []
    signal_variance: Positive | None = None
    noise_variance: Positive | None = None
    mean: Finite | None = None
    stages: Literal["auto", "one"] = "auto"
    interval: Literal["auto", "off"] = "auto"
    calibrate: Literal["auto", "off"] | KeptShare = Field(
        default="auto",
        description="How intervals for new values are calibrated: by counts of the rows that were "
        "asked, where these suffice (auto); not at all (off); or by margins, from the share of the "
        "rows that this number keeps out of the fit. An account counts such a release once.",
    )
    transform: TransformName | None = None
    quantiles: list[Share] = Field(
        default=[],
        max_length=MOST_QUANTILES,
        description="Quantiles to predict in place of a mean, in order.",
    )
    counts: bool = Field(
        default=False, description="Whether numbers are counts of events: rates are predicted."
    )
    overdispersion: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    exposure: Line = Field(
        default="",
        description="Public column with the exposure of each count, which is then no input; if "
        "empty, 1 in each row.",
    )
    class_rates: list[Positive] = []
    link: LinkName | None = None
    after: Id | None = Field(
        default=None,
        description="A release that is known: a later visit of its table asks the same rows again, "
        "one of another table asks these beside. It returns a release that knows both. What "
        "columns, kernel and stages are, the release says.",
    )
    band: Annotated[float, Field(ge=0, allow_inf_nan=False)] | Literal["auto"] = Field(
        default="auto",
        description="Of a later visit: to how many predicted sds on either side of what is "
        "predicted values are clipped; 0 clips to the bounds alone; auto is 1, and 0 where by "
        "counts most values may be the same.",
    )


class PlanRequest(Message):
    """A release to plan."""

    table: Id
    choices: Choices
    epsilons: list[Epsilon] = Field(
        default=[], max_length=10, description="Other budgets to compare with."
    )
    approximate: bool | None = Field(
        default=False,
        description="Whether errors are approximate, and come at once; where it is null, those of "
        "other budgets are if exact ones would take long.",
    )


class FactView(Message):
    """A fact, and its label."""

    label: str
    text: str


class SectionView(Message):
    """Facts under one heading."""

    title: str
    technical: bool = False
    facts: list[FactView]


class PlanView(Message):
    """A plan of a release, which reads no private cell and spends nothing."""

    facts: list[FactView]
    budgets: list[list[str]]
    plan: dict[str, Any]
    choices: Choices = Field(
        description="What is planned: without the δ that was asked for, where there is room for a "
        "release of the same choices without δ alone."
    )
    releases_left: int = Field(
        description="Number of such releases for which the account has room."
    )
    mine_left: int | None = Field(
        description="Number of such releases for which your share has room."
    )
    needs_approval: bool


class NewRequest(Message):
    """A request for a release."""

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
    """A remark on the approval or rejection of a request."""

    remark: Line = ""


class JobView(View):
    """A job that makes a release."""

    id: int
    request: int
    state: JobState
    step: str
    share: float | None
    failure: str
    attempts: int
    created: datetime
    finished: datetime | None


class RequestView(View):
    """A request for a release, and its result."""

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


class NewJointRequest(Message):
    """A request for one release of the rows of several custodians."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "plan": "{…}",
                    "people": {"north": "nora", "south": "samir"},
                    "purpose": "figure 3",
                }
            ]
        }
    )

    plan: Annotated[str, StringConstraints(max_length=1_000_000, pattern=r"^[^\x00]*$")] = Field(
        description="The file of the plan, as `cloakgp custodians plan` writes it."
    )
    people: dict[Name, Name] = Field(
        default={},
        description="Who each site of the plan is; a site that is left out is the person of its "
        "name. All of them are custodians.",
    )
    purpose: Annotated[Line, StringConstraints(min_length=1)]


class WithoutSites(Message):
    """Sites without which the others go on."""

    without: list[Name] = []


class JointSiteView(Message):
    """A custodian of a joint request."""

    name: str
    person: str
    rows: int | None = Field(description="Of their table, once they have joined.")
    missing: bool = Field(description="Whether the others wait for them.")


class JointRequestView(View):
    """A request for one release of several custodians, and who comes next."""

    id: int
    person: str
    purpose: str
    created: datetime
    closed: bool
    output: str
    inputs: list[str]
    epsilon: float
    delta: float
    colluding: int
    persons: str = Field(
        description="Who is protected, where all rows of a person are; empty where rows are."
    )
    plan_digest: str
    roster_digest: str = Field(description="Empty before all have joined.")
    stage: Stage = Field(
        description="What sites do next; collect if the service comes next; done at the end."
    )
    attempt: int
    question: int
    asked: list[str] = Field(description="The sites that are to do it.")
    missing: list[str] = Field(description="Those of them who have not.")
    sites: list[JointSiteView]
    problem: str = Field(description="Why the service cannot go on; empty if it can.")


class ReleaseView(View):
    """A published release."""

    id: int
    request: int
    table: int
    table_name: str
    output: str
    person: str
    purpose: str
    epsilon: float
    delta: float
    after: int | None = Field(
        description="The release that it began with, whose budget was spent before this one."
    )
    digest: str
    size: int
    charge: int
    created: datetime


class Combination(Message):
    """Releases to combine into one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"releases": [1, 2]}]})

    releases: list[Id] = Field(min_length=2, max_length=MOST_COMBINED)
    people: TablePeople | None = Field(
        default=None,
        description="disjoint only where custodians have said it of their tables; if missing, what "
        "they have said.",
    )


class PredictRequest(Message):
    """Rows to predict."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"rows": [{"age": 30, "weight": 60.5}], "interval": 0.9, "above": [180]}]
        }
    )

    rows: list[dict[str, str | float | int | bool | None]] = Field(min_length=1)
    new_output: bool = Field(
        default=False, description="Whether limits are for a new output; otherwise for the curve."
    )
    estimate: Estimate = "median"
    interval: Coverage = None
    quantiles: Quantiles = []
    above: Thresholds = []
    exposure: ExposureColumn = ""


class Predictions(Message):
    """Predictions, one row for each row of the request; null where there is none."""

    columns: list[str]
    rows: list[list[float | str | None]]
    remarks: list[str] = Field(
        description="What to know of these rows: of levels that no row of the table had, of rows "
        "without a prediction, and of numbers outside of what was asked."
    )


class EntryView(Message):
    """An entry of the ledger."""

    number: int
    who: str = Field(description="The name, or the mark in the body if the name is erased.")
    body: dict[str, Any]
    digest: str
    signature: str


class AuditView(View):
    """The result of an audit of the ledger."""

    sound: bool
    entries: int
    digest: str
    findings: list[str]
    notes: list[str] = Field(default=[], description="Notes for auditors on a sound ledger.")


class EventView(View):
    """An event of the audit trail."""

    id: int
    when: datetime
    who: str
    what: str
    person: str = Field(description="The person whom it is about; otherwise empty.")
    about: str
    address: str = Field(
        description="Network address of the caller; empty where it does not matter."
    )


class Health(Message):
    """The sign that the service answers."""

    status: Literal["ok"] = "ok"
    version: str


class NewPerson(Message):
    """A person to add."""

    name: Name
    roles: list[Role]


class ChangedPerson(Message):
    """Changes of a person; fields without a value stay as they are."""

    roles: list[Role] | None = None
    active: bool | None = None


class IdentityView(View):
    """An account at an identity provider."""

    issuer: str
    subject: str


class NewIdentity(Message):
    """An account at an identity provider, by which a person signs in."""

    issuer: Annotated[Line, StringConstraints(min_length=1, max_length=255)] = Field(
        description="Address of the provider, as its configuration states it."
    )
    subject: Annotated[Line, StringConstraints(min_length=1, max_length=255)] = Field(
        description="The provider's claim `sub`, which stays when names change."
    )


class PersonView(View):
    """A person of the service."""

    id: int
    name: str
    roles: list[Role]
    active: bool
    erased: bool = Field(description="Whether a pseudonym stands in the place of the name.")
    created: datetime
    identities: list[IdentityView]


class NewToken(Message):
    """A token to issue."""

    label: Line = ""
    roles: list[Role] | None = Field(
        default=None, description="If missing, all roles of the person."
    )
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class TokenView(View):
    """A token without its secret."""

    id: int
    person: str
    hint: str
    label: str
    roles: list[Role]
    created: datetime
    expires: datetime
    revoked: bool
    used: datetime | None


class RotatedToken(Message):
    """The replacement of a token."""

    grace_hours: Annotated[int, Field(ge=0, le=24 * 30)] = Field(
        default=0, description="Hours for which the old token stays valid; 0 to end it at once."
    )
    days: Annotated[int, Field(ge=1, le=3650)] | None = Field(
        default=None, description="Days for which the new token is valid. For administrators."
    )


class IssuedToken(Message):
    """A new token, which is shown once."""

    token: str
    about: TokenView


class Login(Message):
    """The token by which a browser logs in."""

    token: Annotated[str, StringConstraints(max_length=200)]


class Me(Message):
    """The caller."""

    name: str
    roles: list[Role]
    operations: list[str]
    form_token: str
