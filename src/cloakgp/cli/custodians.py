"""`cloakgp custodians`: one release of several custodians, by a folder or a service."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from cloakgp.cli import options
from cloakgp.cli.console import explain, fails_plainly, say
from cloakgp.cli.fit_options import FitOptions
from cloakgp.fitting.request import FitRequest, MultiOutputRegression, Regression, as_option
from cloakgp.orders import texts
from cloakgp.utils.files import reserve_file

if TYPE_CHECKING:
    from cloakgp.client import Client
    from cloakgp.custodians import Coordinator, Plan, Site
    from cloakgp.custodians.coordinator import JointRelease
    from cloakgp.custodians.exchange import Exchange
    from cloakgp.custodians.plan import Estimator, Roster
    from cloakgp.custodians.progress import Progress
    from cloakgp.data import ArrayRows, FileRows
    from cloakgp.ledger.marks import ReadInputs
    from cloakgp.orders.options import SourceTable

custodians = typer.Typer(
    name="custodians",
    no_args_is_help=True,
    help="One release of rows that nobody may have together: every custodian adds up their own, "
    "with a share of the noise, under masks that cancel.",
)

JOINT = re.compile(r"(?P<service>.+)/joint-requests/(?P<request>[0-9]{1,15})")
# Of the disk, before anybody is asked.
RESERVED_BYTES = 2**24
# Seconds between two looks at a service, and in which it goes on where nobody is missing.
SERVICE_POLL, SERVICE_PATIENCE = 2.0, 60.0
Place = Annotated[
    str,
    typer.Argument(
        help="Folder that all custodians and the coordinator can reach, or the address of a joint "
        "request on a service, with a token in CLOAKGP_TOKEN.",
        metavar="DIR|ADDRESS",
    ),
]
Wait = Annotated[float, typer.Option(help="Seconds to wait for others, each time; 0: do not wait.")]


@custodians.command()
@fails_plainly
@options.takes_groups
def plan(
    place: Annotated[
        str,
        typer.Argument(
            help="Folder that all custodians and the coordinator can reach, or the address of a "
            "service, with a token in CLOAKGP_TOKEN.",
            metavar="DIR|ADDRESS",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            help="The private column: numbers, counts or classes. Several of numbers, with their "
            "ranges: height=40:240,weight=20:200."
        ),
    ],
    sites: Annotated[str, typer.Option(help="Names of the custodians, with commas: north,south.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget of the release.")],
    fit: FitOptions,
    inputs: Annotated[
        str, typer.Option(help="Public columns that predict, with commas, all of numbers.")
    ] = "",
    schema: Annotated[
        Path | None,
        typer.Option(help="Kinds of the public columns, from `cloakgp schema`, in their place."),
    ] = None,
    exposure: Annotated[
        str,
        typer.Option(
            help="With --counts: public column with the exposure of each row: years, people, "
            "kilometres. Predictions are rates for one unit of it."
        ),
    ] = "",
    person: Annotated[
        str,
        typer.Option(
            help="Public column with the id of each row's person: all rows of a person are "
            "protected together. Ids stay with their custodian."
        ),
    ] = "",
    rows_of_person: Annotated[
        int,
        typer.Option(
            help="With --person: the most rows of a person that a custodian may have; who has more "
            "cannot join."
        ),
    ] = 0,
    sites_of_person: Annotated[
        int,
        typer.Option(
            help="With --person: at how many custodians a person may have rows. 1 is the promise "
            "of all that nobody is at two; 0, all of them, promises nothing, and takes as many "
            "times the noise."
        ),
    ] = 0,
    colluding: Annotated[
        int,
        typer.Option(
            help="How many custodians may work together, and with the coordinator, and still learn "
            "nothing more of the others than the guarantee allows."
        ),
    ] = 1,
    people: Annotated[
        str,
        typer.Option(
            help="On a service, who each custodian is there, where names differ: "
            "north=nora,south=samir."
        ),
    ] = "",
    purpose: Annotated[str, typer.Option(help="On a service, what the release is for.")] = "",
) -> None:
    """Write the plan that all custodians agree to. The coordinator does it once.

    It states the columns, the bounds, the budget and how the fit is made. `--stages one --interval
    off` asks a single question, so that a custodian who drops out costs nothing.
    """
    from cloakgp.columns import Number, Schema
    from cloakgp.custodians import Coordinator, FolderExchange, Plan
    from cloakgp.orders.options import declared_schema

    outputs, request = _asked(output, fit, epsilon)
    request.validate(spelled=as_option)
    for name, given in {
        "--queries": fit.queries is not None,
        "--lengthscale": bool(request.lengthscale),
        "--signal-variance": request.signal_variance is not None,
    }.items():
        if given:
            raise ValueError(f"{name} has no meaning for several custodians: leave it out")
    if bool(inputs) == (schema is not None):
        raise ValueError("name the public columns, by --inputs or by --schema")
    if bool(person) != bool(rows_of_person) or (sites_of_person and not person):
        raise ValueError("--person goes with --rows-of-person, and --sites-of-person with both")
    declared = declared_schema(schema) or Schema(tuple(map(Number, texts.names(inputs))))
    if exposure and exposure not in declared.names:
        decimal, thousands = declared.decimal
        declared = declared.and_also(Number(exposure, decimal=decimal, thousands=thousands))
    made = Plan.of(
        _estimator(request),
        sites=texts.names(sites, example="north,south"),
        schema=declared,
        output_name=outputs[0],
        more_outputs=outputs[1:],
        colluding=colluding,
        person_name=person,
        exposure_name=exposure,
        rows_of_person=rows_of_person or 1,
        sites_of_person=sites_of_person or None,
    )
    if is_address(place):
        from cloakgp.client import Client

        with Client(place) as client:
            begun = client.begin_joint(
                made.to_bytes().decode(),
                purpose=purpose or f"{', '.join(outputs)} of {sites}",
                people=_people(people),
            )
        place = f"{place.rstrip('/')}/joint-requests/{begun.id}"
    elif people or purpose:
        raise ValueError("--people and --purpose go with a service")
    else:
        Coordinator(FolderExchange(place), made)
    say(f"Wrote the plan to {place}: {_agreed(made.digest)}", style="green")
    explain("Every custodian compares this with what they see when they join.")


@custodians.command()
@fails_plainly
def answer(
    place: Place,
    table: Annotated[Path, typer.Argument(help="Table of this custodian's rows.", metavar="TABLE")],
    site: Annotated[str, typer.Option(help="Name of this custodian in the plan.")],
    own: Annotated[
        Path,
        typer.Option(
            help="Folder of this custodian alone, for their key and journal; keep it, and show it "
            "to nobody."
        ),
    ],
    plan_agreed: Annotated[
        str,
        typer.Option(
            help="The first 40 digits of the plan's digest, as the coordinator has told it by "
            "another way: nothing is sent for another plan."
        ),
    ] = "",
    trust_exchange: Annotated[
        bool,
        typer.Option(
            "--trust-exchange",
            help="Compare no digests: whoever can write to the folder, or runs the service, is "
            "trusted with which columns are sent, with the budget, and with the keys of all.",
        ),
    ] = False,
    agreed: Annotated[
        str,
        typer.Option(
            help="The first 40 digits of the roster's digest, as the others see it: nothing is "
            "answered to another roster."
        ),
    ] = "",
    ledger: Annotated[
        str, typer.Option("--ledger", envvar="CLOAKGP_LEDGER", help="Count in this ledger.")
    ] = "",
    account: Annotated[
        str, typer.Option("--account", envvar="CLOAKGP_ACCOUNT", help="Account of the ledger.")
    ] = "",
    declared_public: Annotated[
        str,
        typer.Option(
            help="Public columns, with commas, that everybody may know though the account has a "
            "private one with the same values."
        ),
    ] = "",
    missing_output: Annotated[
        str,
        typer.Option(help="Meaning of an empty private cell: refuse, or the number it counts as."),
    ] = "refuse",
    leave: Annotated[
        bool,
        typer.Option(
            "--leave",
            help="Take part no more: from now on nothing is answered or opened, and the ledger "
            "gets back what was charged for masks that are closed.",
        ),
    ] = False,
    wait: Wait = 0.0,
) -> None:
    """Join the plan, and answer what is asked. A custodian runs it again and again, or with --wait.

    Public columns of the table are sent to the coordinator. Of the private column nothing leaves
    but sums with noise, under masks. If it is killed, the next run goes on, and draws nothing
    twice.

    What is sent, and how much noise there is, is said by the plan and the roster, and whoever can
    write to the folder, or runs the service, can exchange these. So nothing is sent without
    --plan-agreed, and nothing answered without --agreed, once each: before, the plan and the roster
    are shown.
    """
    if bool(ledger) != bool(account):
        raise ValueError("--ledger and --account go together")
    from cloakgp.custodians import Coordinator, Site
    from cloakgp.custodians.coordinator import POLL
    from cloakgp.custodians.exchange import ReadOnce
    from cloakgp.custodians.journal import SiteFolder

    counted = None
    if ledger:
        from cloakgp.ledger import Ledger

        counted = Ledger(ledger)
    with reach(place) as reached:
        # The table is opened by the plan that the site goes by.
        exchange, closed = ReadOnce(reached.exchange), reached.closed
        if reached.client is None and own.resolve().is_relative_to(Path(place).resolve()):
            raise ValueError(
                "--own is a folder of this custodian alone, and not within the shared one"
            )
        coordinator = Coordinator(exchange)
        noted = SiteFolder(own).load()
        if not (leave or closed or noted.plan):
            _say_plan(coordinator.plan)
        if not (leave or closed or plan_agreed or noted.plan or trust_exchange):
            _ask_to_compare("this is the plan that you agreed to", option="--plan-agreed")
        source = _source(table, coordinator.plan, missing_output=missing_output)
        made = Site(
            site,
            _rows(source, coordinator.plan),
            exchange,
            own,
            ledger=counted,
            account=account,
            agreed=agreed,
            plan_agreed=plan_agreed,
            trusts_exchange=trust_exchange,
            read_inputs=_read_inputs(source, coordinator.plan),
            declared_public=texts.names(declared_public) if declared_public else (),
        )
        if leave or closed:
            made.leave()
            say("The joint request is closed." if closed else f"{site} takes part no more.")
            explain("No mask is opened any more; what was opened before stays spent.")
            return
        poll = POLL if reached.client is None else SERVICE_POLL
        _step_until_done(made, coordinator, wait=wait, poll=poll)


@custodians.command()
@fails_plainly
def collect(
    place: Place,
    to: Annotated[
        Path | None, typer.Option("--to", "-o", help="File for the release, once it is there.")
    ] = None,
    without: Annotated[
        str,
        typer.Option(
            help="Custodians to go on without, with commas: before all have answered a question."
        ),
    ] = "",
    wait: Wait = 0.0,
) -> None:
    """Ask all custodians, and make the release. The coordinator runs it again, or with --wait."""
    from cloakgp.cli.progress import reporting
    from cloakgp.custodians import Coordinator
    from cloakgp.report.describe import headline
    from cloakgp.utils.names import DEFAULT_GAP

    names = texts.names(without, example="north,south") if without else ()
    with reach(place) as reached:
        if reached.client is not None:
            release = _collect_at_service(reached.client, reached.request, without=names, wait=wait)
        else:
            coordinator = Coordinator(reached.exchange)
            if names and coordinator.roster is None:
                coordinator.close_roster(without=names)
            elif names:
                coordinator.begin_without(names)
            _say_without(names)
            with reporting("asking the custodians", gap=DEFAULT_GAP) as reporter:
                release = coordinator.collect(patience=wait, on_step=reporter.step)
    if to is not None:
        with reserve_file(to, size=RESERVED_BYTES) as reserved:
            reserved.write(release.to_bytes())
        say(f"Wrote {to}: {release.n_rows:,} rows, {headline(release)}.", style="green")
    assert release.custodians is not None
    explain(release.custodians.assumption)


@custodians.command()
@fails_plainly
def show(place: Place) -> None:
    """Show what was agreed: the plan, and the custodians who joined, by their digests."""
    from cloakgp.custodians import Coordinator

    with reach(place) as reached:
        _show(Coordinator(reached.exchange), reached)


def _show(coordinator: Coordinator, reached: Reached) -> None:
    made, roster = coordinator.plan, coordinator.roster
    _say_plan(made)
    if roster is None:
        say("roster: not closed yet")
    else:
        _say_roster(roster)
    if coordinator.members:
        asked = ", ".join(coordinator.members)
        say(f"asked, in attempt {coordinator.attempt}: {asked}")
    say(f"next: {reached.progress(coordinator).words}")


def _say_plan(made: Plan) -> None:
    """Say the plan in words, with its digest."""
    epsilon, delta = made.budget
    say(f"plan: {_agreed(made.digest)}")
    private = ", ".join(made.output_names)
    say(f"  {private} by {', '.join(made.input_names)}; ε = {epsilon:g}, δ = {delta:g}")
    say(f"  {made.columns}")
    say(f"  {made.declared}")
    say(f"  custodians: {', '.join(made.sites)}; up to {made.colluding} may work together")
    if made.grouped:
        say(f"  {made.persons}")


def _say_roster(roster: Roster) -> None:
    """Say who joined, with their keys, and the digest."""
    say(f"roster: {_agreed(roster.digest)}")
    for member in roster.members:
        say(f"  {member.name}: {member.rows:,} rows, key {member.key[:16]}")


def _ask_to_compare(what: str, *, option: str) -> NoReturn:
    """Say how a custodian makes sure of what others wrote, and end.

    Raises
    ------
    typer.Exit
    """
    say("Nothing was sent of the private column.", style="yellow")
    explain(
        f"To be sure that {what}, compare the digest with the other custodians by another way, by "
        f"telephone say, and run this again with {option} and its digits."
    )
    raise typer.Exit(1)


def _asked(output: str, fit: FitOptions, epsilon: float) -> tuple[list[str], FitRequest]:
    """Return the names of the private columns, and the request of a fit of them."""
    if "=" not in output:
        return [output], fit.request(epsilon)
    ranges = texts.declared_ranges(output.split(","), option="--output")
    if fit.bounds is not None:
        raise ValueError("--bounds are those of one private column: of several, --output has them")
    request = replace(fit, bounds=next(iter(ranges.values()))).request(epsilon)
    task = request.task
    usual = isinstance(task, Regression) and not (
        task.of_counts or task.mean is not None or task.output_transform or task.kept
    )
    if not usual:
        raise ValueError("several private columns hold numbers, as they are: leave the rest out")
    assert isinstance(task, Regression)
    several = MultiOutputRegression(
        bounds=tuple(ranges.values()),
        noise_variance=task.noise_variance,
        stages=task.stages,
        interval=task.interval,
        calibrate="auto" if task.calibrate == "auto" else False,
    )
    return list(ranges), replace(request, task=several)


def _estimator(request: FitRequest) -> Estimator:
    from cloakgp.estimators import DPGPMultiOutputRegressor
    from cloakgp.orders.estimators import estimator_of

    if isinstance(request.task, MultiOutputRegression):
        return DPGPMultiOutputRegressor(**request.parameters() | {"kernel": None, "schema": None})
    return estimator_of(request, kernel=None, schema=None)


def _say_without(names: Sequence[str]) -> None:
    if names:
        say(f"Going on without {', '.join(names)}.", style="yellow")


def _collect_at_service(
    client: Client, request: int, *, without: Sequence[str], wait: float
) -> JointRelease:
    """Let the service go on, wait for it and for custodians, and return the release."""
    import time

    from cloakgp.custodians.coordinator import release_of
    from cloakgp.custodians.exchange import RELEASE
    from cloakgp.custodians.progress import progress_from

    seen = client.joint_request(request)
    if seen.stage != "done" and (without or seen.stage == "collect"):
        seen = client.continue_joint(request, without=without)
    _say_without(without)
    began = time.monotonic()
    while seen.stage != "done":
        if seen.closed or seen.problem:
            raise ValueError(seen.problem or "the joint request was closed")
        # The service goes on by itself, and is waited for a little in any case.
        patience = max(wait, SERVICE_PATIENCE) if seen.stage == "collect" else wait
        if time.monotonic() - began >= patience:
            raise ValueError(progress_from(vars(seen)).words)
        time.sleep(SERVICE_POLL)
        seen = client.joint_request(request)
    return release_of(client.read_joint_file(request, RELEASE))


@dataclass(frozen=True)
class Reached:
    """Where custodians exchange their files.

    Attributes
    ----------
    exchange : Exchange
    client : Client or None
        Of a service; None for a folder.
    request : int
        Number of the joint request there.
    """

    exchange: Exchange
    client: Client | None = None
    request: int = 0

    @property
    def closed(self) -> bool:
        """Whether it is a joint request that was closed without a release."""
        return self.client is not None and self.client.joint_request(self.request).closed

    def progress(self, coordinator: Coordinator) -> Progress:
        """Return who comes next, which a service tells: it shows others' files to nobody."""
        from cloakgp.custodians.progress import progress_from

        if self.client is None:
            return coordinator.progress
        return progress_from(vars(self.client.joint_request(self.request)))


@contextmanager
def reach(place: str) -> Iterator[Reached]:
    """Reach a folder, or a joint request on a service.

    Raises
    ------
    ValueError
        If an address is none of a joint request, there is no token, or the service refuses.
    """
    if not is_address(place):
        from cloakgp.custodians import FolderExchange

        yield Reached(FolderExchange(place))
        return
    found = JOINT.fullmatch(place.rstrip("/"))
    if found is None:
        raise ValueError(
            f"{place!r} is no address of a joint request: it looks like "
            "https://releases.example.org/joint-requests/3"
        )
    from cloakgp.client import Client

    with Client(found["service"]) as client:
        request = int(found["request"])
        # Told apart from a request without files.
        client.joint_request(request)
        yield Reached(client.exchange(request), client, request)


def is_address(place: str) -> bool:
    """Return whether a place is the address of a service, and no folder.

    Examples
    --------
    >>> is_address("https://releases.example.org/joint-requests/3"), is_address("shared")
    (True, False)
    """
    return place.startswith(("https://", "http://"))


def _people(text: str) -> dict[str, str]:
    found = dict(each.partition("=")[::2] for each in texts.names(text)) if text else {}
    if not all(found.values()):
        raise ValueError("--people names who each custodian is: north=nora,south=samir")
    return found


def _agreed(digest: str) -> str:
    from cloakgp.custodians.plan import digits_to_compare

    return digits_to_compare(digest)


def _source(table: Path, made: Plan, *, missing_output: str) -> SourceTable:
    from cloakgp.data.raw import check_missing_output
    from cloakgp.orders.options import SourceTable

    check_missing_output(missing_output, classes=_classes(made))
    return SourceTable(
        path=table,
        output=made.output_name,
        schema=made.read_schema(),
        missing_output=missing_output,
    )


def _classes(made: Plan) -> tuple[str, ...]:
    return tuple(made.settings.get("classes", ()))


def _rows(source: SourceTable, made: Plan) -> FileRows | ArrayRows:
    from cloakgp.data import FileRows

    if made.more_outputs:
        return _rows_of_several(source, made)
    return FileRows(
        source.path,
        output=made.output_name,
        groups=made.person_name or None,
        raw=source.raw_rows(classes=_classes(made)),
        table_format=source.table_format,
    )


def _read_inputs(source: SourceTable, made: Plan) -> ReadInputs:
    """Return functions that read what is sent of a table, for a ledger that knows private ones."""
    from cloakgp.orders.public_inputs import inputs_named, public_inputs

    found = public_inputs(source, classes=_classes(made), others=made.more_outputs)
    # Which rows are of one person is sent too.
    return {**found, **inputs_named(source, [made.person_name] if made.grouped else [])}


def _rows_of_several(source: SourceTable, made: Plan) -> ArrayRows:
    """Return rows with several private columns, which are held."""
    import pandas as pd

    from cloakgp.data import ArrayRows
    from cloakgp.data.tables import read_people

    if source.missing_output == "drop":
        raise ValueError("--missing-output drop goes with one private column")
    raw = source.raw_rows(others=made.more_outputs)
    people = read_people(
        source.path,
        raw=raw,
        output=made.output_name,
        groups=made.person_name or None,
        more_outputs=made.more_outputs,
        table_format=source.table_format,
    )
    private = {made.output_name: people.private, **people.more_private}
    rows = ArrayRows(
        raw.schema.encode(people.columns).X,
        pd.DataFrame({name: private[name] for name in made.output_names}),
        input_names=raw.schema.names,
        groups=people.groups,
    )
    rows.schema = raw.schema
    return rows


def _step_until_done(made: Site, coordinator: Coordinator, *, wait: float, poll: float) -> None:
    """Do what comes next, and wait for more."""
    import time

    until = time.monotonic() + wait
    while True:
        for what in made.step():
            say(f"{what[0].upper()}{what[1:]}: {_told(what, coordinator)}", style="green")
            until = time.monotonic() + wait
        roster = _roster_to_compare(made, coordinator)
        if coordinator.done or roster is not None or time.monotonic() >= until:
            break
        time.sleep(poll)
    if coordinator.done:
        # All masks were opened meanwhile: the ledger notes the sums that the release holds.
        made.step()
    if roster is not None:
        _say_roster(roster)
        _ask_to_compare("these are the keys of all", option="--agreed")
    say("The release is there." if coordinator.done else "Run it again when others have gone on.")


def _roster_to_compare(made: Site, coordinator: Coordinator) -> Roster | None:
    """Return the roster if it is there, and this custodian must compare it."""
    return None if made.is_bound_to_roster else coordinator.roster


def _told(what: str, coordinator: Coordinator) -> str:
    if what == "joined":
        return f"the plan {_agreed(coordinator.plan.digest)}"
    assert coordinator.roster is not None
    told = {"answered": "a question to the roster", "opened": "a mask, to the roster"}[what]
    return f"{told} {_agreed(coordinator.roster.digest)}"
