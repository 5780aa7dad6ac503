"""Several custodians: one release of rows that nobody may have together.

Each custodian (a *site*) holds some rows of a table, and trusts nobody with its private column. A
*coordinator* fits one release of all of them: it knows the public inputs of all rows, chooses the
questions, and gets the answers of all sites together, with noise. A question is answered in two
rounds:

1. Every site adds up the chunks of its own rows, in whole steps of the grid that all of them
   compute alike, adds its share of the noise (`ask_share` of `cloakgp.privacy.ask`), and masks,
   which cancel in the sum of all but for one that each site keeps to itself.
2. When all have answered, every site opens that mask. The coordinator subtracts these, and has the
   sum of all rows with the noise of the release.

If a site drops out in the first round, nobody opens anything: what was sent tells nothing, the
question is void, and the others begin again without it, with fresh noise, at no cost.

Files lie where all can read and write (`cloakgp.custodians.exchange`). The masks, and what the
coordinator and sites that work together can learn, stand at `cloakgp.custodians.masks`; what is
counted, and when, at `cloakgp.custodians.site`.

Public names are listed in `__init__.pyi`, and imported when they are first used.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
