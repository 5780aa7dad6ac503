r"""Masks that cancel: of what a site sends, the coordinator can read the sum of all alone.

Protocol
--------
All is modulo 2⁶⁴. For a question with the digest h, to the sites 1, …, n, of public keys that all
know, site i sends

    y_i = x_i + F(b_i) + Σ_{j>i} F(s_ij) − Σ_{j<i} F(s_ij),

x_i its sums with its share of the noise, F a pseudorandom generator (ChaCha20, keyed by the seed),
s_ij = s_ji a seed of its pair with j (HKDF with SHA-256, of their X25519 secret, h, and both public
keys), and b_i a seed of its own (HKDF of a secret of its own and h). When y_1, …, y_n are all
there, and only then, it opens b_i. In Σ_i y_i the masks of pairs cancel: Σ_i x_i = Σ_i (y_i −
F(b_i)).

Who learns what
---------------
Let the coordinator and up to t sites work together: they know all that is sent, and all secrets of
these sites. X25519, HKDF and ChaCha20 are taken for ideal: seeds that they do not know are uniform.

* Of a question that one of the others, a site i, has not opened, they learn nothing of x_i: b_i is
  used nowhere else, so y_i is uniform whatever x_i is. That is so whenever another site has dropped
  out, has come too late, or was said to.
* Of one that all have opened they learn Σ x_i over the others, and nothing else of these: for all j
  and k among them s_jk is uniform and unknown, and with these masks the y_i − F(b_i) are uniform
  among the numbers of this sum (Bonawitz et al. 2017, *Practical secure aggregation for
  privacy-preserving machine learning*, lemma 6.1).
* If the coordinator shows different questions to different sites, or says that all have answered
  where they have not, masks do not cancel: h is in every seed, and what is left is uniform.

So it is enough that Σ x_i over the others has the noise of the release. Every one of n − t sites
adds 1/(n − t) of it. The coordinator may change what it was sent: then the release is wrong, and
tells no more.

This is so for public keys that are the sites' own. Whoever can exchange them before sites have seen
them can take the place of sites: compare `cloakgp.custodians.plan.Roster.digest` by another way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloakgp.custodians.errors import CustodiansError
from cloakgp.privacy.sampler import Integers
from cloakgp.utils.extras import extra
from cloakgp.utils.files import PERSONAL, reserve_file

with extra("custodians"):
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

Words = NDArray[np.uint64]
SEED_BYTES = 32
NONCE = bytes(16)


@dataclass(frozen=True, repr=False)
class SiteKey:
    """The secrets of a site.

    Attributes
    ----------
    private : bytes
        Of the pair whose other half all know.
    own : bytes
        Of which nobody knows anything.
    """

    private: bytes
    own: bytes

    @classmethod
    def draw(cls) -> SiteKey:
        """Return new ones."""
        return cls(
            private=X25519PrivateKey.generate().private_bytes_raw(),
            own=ChaCha20Poly1305.generate_key(),
        )

    @classmethod
    def kept(cls, path: Path) -> SiteKey:
        """Return those in a file, which is made for its owner alone if it is not there.

        Raises
        ------
        CustodiansError
            If the file holds none.
        """
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            made = cls.draw()
            with reserve_file(path, mode=PERSONAL) as reserved:
                reserved.write(made.private + made.own)
            return made
        if len(content) != 2 * SEED_BYTES:
            raise CustodiansError(f"{path.name} is damaged: the others go on without this site")
        return cls(private=content[:SEED_BYTES], own=content[SEED_BYTES:])

    @property
    def public(self) -> str:
        """The public key, in hexadecimal."""
        key = X25519PrivateKey.from_private_bytes(self.private)
        return key.public_key().public_bytes_raw().hex()

    def own_seed(self, question: str) -> bytes:
        """Return b_i of a question, by its digest."""
        return _derived(self.own, b"own", question)

    def pair_seed(self, other: str, question: str) -> bytes:
        """Return s_ij of a question with another site.

        Parameters
        ----------
        other : str
            Its public key.
        question : str
            The digest.

        Raises
        ------
        CustodiansError
            If it is no key.
        """
        own = X25519PrivateKey.from_private_bytes(self.private)
        try:
            secret = own.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other)))
        except ValueError:
            raise CustodiansError("the public key of a site is none") from None
        return _derived(secret, b"pair", question, *sorted((self.public, other)))

    def hide(
        self, integers: Integers, *, site: str, keys: Mapping[str, str], question: str
    ) -> Integers:
        """Return y_i: integers with the masks of a question.

        Parameters
        ----------
        integers : array of int, shape (k,)
            x_i: private.
        site : str
            Name of this one.
        keys : mapping
            Public keys by the names of all sites that are asked.
        question : str
            The digest.
        """
        hidden = integers.view(np.uint64) + mask(self.own_seed(question), len(integers))
        for other, key in keys.items():
            if other != site:
                shared = mask(self.pair_seed(key, question), len(integers))
                hidden = hidden + shared if site < other else hidden - shared
        return hidden.view(np.int64)


def mask(seed: bytes, count: int) -> Words:
    """Return F(seed), of so many numbers modulo 2⁶⁴.

    Examples
    --------
    >>> mask(bytes(32), 1) == mask(bytes(32), 2)[:1]
    array([ True])
    """
    stream = Cipher(ChaCha20(seed, NONCE), mode=None).encryptor().update(bytes(8 * count))
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def open_sum(answers: Mapping[str, Integers], seeds: Mapping[str, bytes]) -> Integers:
    """Return the sum of what sites hid.

    Parameters
    ----------
    answers : mapping
        y_i by the names of all sites.
    seeds : mapping
        b_i of the same.
    """
    total = np.zeros(len(next(iter(answers.values()))), dtype=np.uint64)
    for site, answer in answers.items():
        total = total + answer.view(np.uint64) - mask(seeds[site], len(answer))
    return total.view(np.int64)


def _derived(secret: bytes, use: bytes, *context: str) -> bytes:
    info = b"|".join([b"cloakgp custodians", use, *(each.encode() for each in context)])
    return HKDF(algorithm=SHA256(), length=SEED_BYTES, salt=None, info=info).derive(secret)
