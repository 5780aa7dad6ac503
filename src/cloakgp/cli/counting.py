"""Publication of a release by a command: counted in a ledger, if one is named, and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

import typer

from cloakgp.cli.console import explain, notice, say
from cloakgp.orders.origin import Origin
from cloakgp.utils.files import reserve_file

if TYPE_CHECKING:
    from cloakgp.ledger.accounts import Account
    from cloakgp.ledger.marks import ReadInputs
    from cloakgp.privacy.tally import Drawn
    from cloakgp.release.open import OpenedRelease

# Of the disk, before anything is asked; few releases are larger.
RESERVED_BYTES = 2**24


class AnyRelease(Protocol):
    """A release."""

    def to_bytes(self) -> bytes:
        """Return its file."""


Made = TypeVar("Made", bound=AnyRelease)


@dataclass
class Making(Generic[Made]):
    """The making of a release by a command, and whether it was asked now.

    Attributes
    ----------
    make : callable
    asked : bool
        Whether ``make`` was called; if not, a ledger had the release.
    """

    make: Callable[[], Made]
    asked: bool = field(default=False, init=False)

    def __call__(self) -> Made:
        """Return a new release."""
        self.asked = True
        return self.make()


@dataclass
class Progress:
    """Progress of a command.

    Attributes
    ----------
    made : bool
        Whether there is a release, which may or may not have been written.
    """

    made: bool = False


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Options about the origin of a release, and the ledger that counts it, if any.

    Attributes
    ----------
    purpose, by, licence, ledger, account, key, declared_public : str
        Empty by default.
    """

    purpose: Annotated[
        str,
        typer.Option(
            "--purpose",
            envvar="CLOAKGP_PURPOSE",
            help="Purpose of the release; kept in it, and in the ledger.",
        ),
    ] = ""
    by: Annotated[
        str,
        typer.Option(
            "--by",
            envvar="CLOAKGP_BY",
            help="Name of the person who makes the release; kept in it.",
        ),
    ] = ""
    licence: Annotated[
        str,
        typer.Option("--licence", help="Licence of the release; kept in it."),
    ] = ""
    ledger: Annotated[
        str,
        typer.Option(
            "--ledger",
            envvar="CLOAKGP_LEDGER",
            help="Count it in this ledger, which refuses charges beyond the account's limit: a "
            "file, or postgresql://HOST/NAME.",
        ),
    ] = ""
    account: Annotated[
        str,
        typer.Option(
            "--account",
            envvar="CLOAKGP_ACCOUNT",
            help=(
                "Account of the ledger; by default the one that the private column is attached to."
            ),
        ),
    ] = ""
    key: Annotated[
        str,
        typer.Option(
            "--key",
            help="With --ledger and --account: name of this one release. Another run with the same "
            "key and the same options writes the same release, and spends nothing; with other "
            "options it is refused.",
        ),
    ] = ""
    declared_public: Annotated[
        str,
        typer.Option(
            "--declared-public",
            help="With --ledger: public columns, with commas, that everybody may know though a "
            "private column of the account has the same values. That is your word, and the ledger "
            "notes it. Without it such columns are refused.",
        ),
    ] = ""

    @property
    def origin(self) -> Origin:
        """The origin that the release keeps."""
        return Origin(self.purpose, self.by, self.licence)

    @property
    def another_run(self) -> str:
        """What another run would spend: a sentence."""
        if self.key:
            return (
                "Another run with this key and the same options spends nothing; one without the "
                "key spends the same again, unless nobody ever sees the first file."
            )
        return "Another run spends the same again, unless nobody ever sees the first file."

    def check(self) -> None:
        """Raise ValueError for options that have no meaning without a ledger."""
        if not self.ledger and (self.account or self.key or self.declared_public):
            raise ValueError("--account, --key and --declared-public go with --ledger")

    @contextmanager
    def telling(self, *, delta: float = 0.0) -> Iterator[Progress]:
        """State the spent budget, by the noise really drawn, if a block is interrupted or fails.

        Parameters
        ----------
        delta : float
            The requested δ, at which the spending of Gaussian noise is stated.

        Yields
        ------
        Progress
            To be told when a release is made, and being written.
        """
        drawn: Sequence[Drawn] = ()
        progress = Progress()
        try:
            from cloakgp.privacy.tally import tallied

            with tallied() as drawn:
                yield progress
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt | SystemExit | typer.Abort)
            if drawn:
                from cloakgp.privacy.tally import describe_spent

                counted = ", which the ledger has counted" if self.ledger else ""
                notice(
                    f"{'Interrupted' if interrupted else 'It failed'} after noise was drawn: "
                    f"{describe_spent(drawn, delta=delta)} is spent{counted}"
                    f"{'' if progress.made else '; no release was made'}."
                )
            elif interrupted:
                notice("Interrupted: nothing was drawn, so nothing is spent.")
            raise

    def write(
        self,
        make: Callable[[], Made],
        to: Path,
        *,
        choices: Mapping[str, object],
        read: Sequence[Path],
        overwrite: bool,
        delta: float,
        inputs: Callable[[], ReadInputs] | None = None,
        confirm: Callable[[], None] | None = None,
    ) -> Made | None:
        """Ask private columns, within what their account has left, and write the release.

        Where the ledger has a release under the key, that one is written and described, and nothing
        is asked.

        Parameters
        ----------
        make : callable
            Fits once, and returns a release.
        to : Path
            File of the release.
        choices : mapping
            All public choices of the release, which the ledger compares by key.
        read : sequence of Path
            Files that are read, none of which may be replaced.
        overwrite : bool
        delta : float
            That was asked for.
        inputs : callable, optional
            Returns the public columns that the release publishes, by name, for the ledger; by
            default there are none.
        confirm : callable, optional
            Called before anything is asked, when the file is reserved.

        Returns
        -------
        release or None
            None if it was taken from the ledger, and described.

        Raises
        ------
        ValueError
            For what has no meaning without a ledger.
        """
        self.check()
        making = Making(make)
        with (
            reserve_file(to, overwrite=overwrite, inputs=read, size=RESERVED_BYTES) as target,
            self.telling(delta=delta) as progress,
        ):
            made = self._publish(making, choices=choices, inputs=inputs, confirm=confirm)
            content, progress.made = made.to_bytes(), True
            target.write(content, keep=True)
        if not making.asked:
            self._tell_kept(made, to=to)
            return None
        fresh: Made = made
        return fresh

    def _publish(
        self,
        making: Making[Made],
        *,
        choices: Mapping[str, object],
        inputs: Callable[[], ReadInputs] | None,
        confirm: Callable[[], None] | None,
    ) -> Any:
        """Return a new release, or that of the ledger."""
        account, stated = self._account(), ""
        if account is not None and self.key:
            from cloakgp.orders.choices import state_choices

            stated = state_choices(**choices)
            kept = account.recall(self.key, choices=stated)
            if kept is not None:
                return kept
        if account is not None:
            from cloakgp.orders import texts

            declared = texts.names(self.declared_public) if self.declared_public else []
            account = account.with_inputs(inputs() if inputs else {}, declared_public=declared)
        if confirm is not None:
            if account is not None:
                account.check_inputs()
            confirm()
        if account is None:
            return making()
        return account.publish(making, key=self.key or None, choices=stated)

    def _account(self) -> Account | None:
        if not self.ledger:
            return None
        from cloakgp.ledger import Ledger
        from cloakgp.ledger.blocks import Named

        ledger, named = Ledger(self.ledger), Named.by_environment()
        # Of the block that this command was started in, or set for it.
        about = {
            "purpose": self.purpose,
            "cohort": named.cohort,
            "approved_by": named.approved_by,
        }
        return (
            ledger.account(self.account, **about) if self.account else ledger.any_account(**about)
        )

    def _tell_kept(self, kept: OpenedRelease, *, to: Path) -> None:
        """Describe a release that was written from the ledger, by what it says of itself."""
        from cloakgp.release import MultiOutputRelease, OneOutputRelease

        about = ""
        if isinstance(kept, MultiOutputRelease):
            about = f" of {', '.join(kept.called)}"
        elif isinstance(kept, OneOutputRelease):
            about = f" of {kept.output_name}"
        say(
            f"Wrote {to}: the release{about} that the ledger keeps under the key {self.key!r}.",
            style="green",
        )
        say(f"  {kept.guarantee}")
        explain("It was taken from the ledger: nothing was asked now, and nothing spent. In words:")
        say(f"  cloakgp show {to}")
