"""`cloakgp page`: one file with inputs to move and the predictions for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloakgp.cli import options
from cloakgp.cli.console import fails_plainly, say

SUFFIXES = (".html", ".htm")


@fails_plainly
def page(
    release_file: options.ReleaseFile,
    to: Annotated[Path, typer.Option("--to", "-o", help="Page to write: .html.")],
    overwrite: options.Overwrite = False,
) -> None:
    """Write a page that predicts, for any browser: one file, no server. Costs no privacy.

    Whoever opens it moves the inputs, and sees prediction, bands and guarantee. Nothing is fetched
    from elsewhere, and nothing sent.
    """
    from cloakgp.pages.prediction import prediction_html
    from cloakgp.utils.files import reserve_file
    from cloakgp.utils.formatting import bytes_in_words

    if to.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{to}: the name of a page must end in {' or '.join(SUFFIXES)}")
    with reserve_file(to, overwrite=overwrite, inputs=[release_file]) as target:
        content = prediction_html(options.open_release(release_file)).encode()
        target.write(content)
    say(f"Wrote {to} ({bytes_in_words(len(content))}): open it in a browser.", style="green")
