"""Exchange of files between custodians by a service, which keeps them for all.

It has the methods of `cloakgp.custodians.exchange.Exchange`, which sites and coordinators go by; a
site goes on by it as by a folder. A file is never changed, so that what was read once is not asked
for again.
"""

from __future__ import annotations

from typing import Protocol

from cloakgp.client.answers import ConflictError, NotFoundError


class JointFiles(Protocol):
    """A service that keeps files: `cloakgp.client.Client`."""

    def read_joint_file(self, request: int, name: str) -> bytes:
        """Return a file."""

    def send_joint_file(self, request: int, name: str, content: bytes) -> None:
        """Send a file of one's own."""


class ServiceExchange:
    """The files of a joint request that its reader may read, and send.

    Parameters
    ----------
    service : Client
    request : int
        Number of the joint request.

    Examples
    --------
    >>> class Kept:
    ...     def read_joint_file(self, request, name):
    ...         return b"{}"
    >>> ServiceExchange(Kept(), 1).get("plan.json")
    b'{}'
    """

    def __init__(self, service: JointFiles, request: int) -> None:
        self._service = service
        self._request = request
        self._known: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none yet, or it is another's."""
        if name not in self._known:
            try:
                self._known[name] = self._service.read_joint_file(self._request, name)
            except NotFoundError:
                return None
        return self._known[name]

    def has(self, name: str) -> bool:
        """Return whether there is a file."""
        return self.get(name) is not None

    def put(self, name: str, content: bytes) -> None:
        """Send a file, unless it is there with the same content.

        Raises
        ------
        ClientError
            If it is there with another, or the service refuses it.
        """
        known = self._known.get(name)
        if known is not None and known != content:
            raise ConflictError(f"{name} was written before, and is another")
        if known is None:
            self._service.send_joint_file(self._request, name, content)
            self._known[name] = content
