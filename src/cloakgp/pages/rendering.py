"""Templates of HTML pages: everything that is filled in is escaped, and shown as it is."""

from __future__ import annotations

from functools import cache
from typing import Any

from cloakgp.utils.extras import extra
from cloakgp.utils.formatting import printable

with extra("page"):
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

# Nothing is fetched from anywhere, whatever a page is made of.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:"
SCRIPTS = "; script-src 'unsafe-inline'"


def render(name: str, **values: Any) -> str:
    """Return a page.

    Parameters
    ----------
    name : str
        Of a template in this folder.
    **values
        What is filled in.

    Examples
    --------
    >>> "<script" in render("sheet.html", title="<script>", headline="", insecure=False,
    ...                     sections=(), pictures=(), bands=False, policy=POLICY)
    False
    """
    return environment_of("cloakgp.pages").get_template(name).render(**values)


@cache
def environment_of(package: str) -> Environment:
    """Return how the templates of a package are filled in.

    Parameters
    ----------
    package : str
        In whose folder ``templates`` they are.

    Examples
    --------
    >>> environment_of("cloakgp.pages").from_string("{{ name }}").render(name="<b>")
    '&lt;b&gt;'
    """
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """Escape letters that browsers obey and do not show, such as marks of direction."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value
