"""Service: tables, plans, requests, jobs and releases for several people, over HTTP.

From the bottom up, each module imports from those before it:

* `settings`, `errors`, `access` (who may do what: one table), `credentials` (tokens);
* `models`, `migrations`, `database`: the service's tables, beside the ledger's in its database;
* `messages`: what goes in and comes out, as pydantic models;
* `context`: `Service`, all that is there while the service runs, and `Work`, what one call has to
  do with: the service, and the actor with their roles;
* `orders`: a registered table and the choices of an analyst as an order (`cloakgp.orders`);
* `worker`: a job in a worker process; `dispatch`: jobs on Dask;
* `operations`: plain functions of a `Work` and messages, one for each action of a person.
  Each checks that the actor may (`access.operation`), opens its own short transactions, returns
  messages, and raises `errors`. They know nothing of HTTP: other pages call them;
* `guards`: who is asking, by a token or a session's cookie, with limits and protection against
  forged requests; `routes`: thin routers; `app`: all of it as one application.
"""

from cloakgp.utils.extras import extra

with extra("service"):
    import fastapi as fastapi
    import limits as limits
    import prometheus_client as prometheus_client
    import uvicorn as uvicorn
