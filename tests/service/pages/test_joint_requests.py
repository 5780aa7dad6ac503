"""Pages of joint requests: who has answered, who is missing, what to run next, and the way on."""

from __future__ import annotations

import re

import pytest
from services import begin_joint, joint_sites

from cloakgp import DPGPMultiOutputRegressor, DPGPQuantileRegressor
from cloakgp.service.access import Role


@pytest.fixture
def begun(service, tokens, tmp_path):
    """A request of north and south: its number, and the sites."""
    view, owners = begin_joint(service, tokens[Role.ANALYST])
    return view.id, joint_sites(service, view.id, owners, tmp_path), owners


def words_of(answer):
    assert answer.status_code == 200, answer.text
    text = re.sub(r"<[^>]+>", " ", answer.text.partition("<main")[2])
    return " ".join(text.split())


def test_the_state_and_what_to_run_next(visit, begun):
    request, sites, owners = begun
    analyst, page = visit(Role.ANALYST), f"/joint-requests/{request}"
    shown = words_of(analyst.get(page))
    assert "waits for north, south" in shown
    assert shown.count("has to join") == 2
    assert f"cloakgp custodians answer http://127.0.0.1{page} SITE.csv --site SITE" in shown
    sites["north"].step()
    shown = words_of(analyst.get(page))
    assert "north north 15 has joined" in shown
    assert "south south not known yet has to join" in shown
    assert "Roster not closed yet" in shown
    # The command is of whoever is missing, for whoever reads it.
    for reader in (analyst, visit(Role.CUSTODIAN, owners["north"])):
        assert "south.csv --site south --own own-south" in words_of(reader.get(page))
    assert "Your site, north, has done its part for now" in words_of(
        visit(Role.CUSTODIAN, owners["north"]).get(page)
    )
    sites["south"].step()
    shown = words_of(analyst.get(page))
    assert "has answered question 1" in shown
    assert "north north 15 has to answer" in shown
    assert re.search(r"Roster( [0-9a-f]{4}){10} : compare", shown)
    own = words_of(visit(Role.CUSTODIAN, owners["north"]).get(page))
    assert "north.csv --site north --own own-north" in own
    sites["north"].step()
    assert "south south 15 has to open the mask" in words_of(analyst.get(page))
    sites["south"].step()
    shown = words_of(analyst.get(page))
    assert "the release is there" in shown
    assert f"cloakgp custodians collect http://127.0.0.1{page} -o release.cloak" in shown
    assert "Close it" not in shown
    assert "the release is there" in words_of(analyst.get("/joint-requests"))
    assert "joint requests" in words_of(analyst.get("/requests"))


def test_who_is_protected_together_is_shown(visit, service, tokens, tmp_path):
    persons = {"person_name": "who", "rows_of_person": 3, "sites_of_person": 1}
    view, owners = begin_joint(service, tokens[Role.ANALYST], **persons)
    shown = words_of(visit(Role.ANALYST).get(f"/joint-requests/{view.id}"))
    assert "Budget of each person" in shown
    assert (
        "Protected together all rows of a person by who, up to 3 at a site; nobody is at two sites"
        in shown
    )
    groups = [f"p{number // 3}" for number in range(15)]
    sites = joint_sites(service, view.id, owners, tmp_path, groups=groups)
    for _ in range(3):
        for site in sites.values():
            site.step()
    shown = words_of(visit(Role.ANALYST).get(f"/joint-requests/{view.id}"))
    assert "the release is there" in shown


SETTINGS = {"epsilon": 1.0, "inducing": 4, "stages": None, "interval": False}


@pytest.mark.parametrize(
    ("model", "given", "told"),
    [
        (DPGPQuantileRegressor(quantiles=0.5, bounds=(-2, 2), gap=0.2, **SETTINGS), {}, "y"),
        (
            DPGPMultiOutputRegressor(bounds=((-2, 2), (-3, 3)), **SETTINGS),
            {"more_outputs": ["z"]},
            "y, z",
        ),
    ],
)
def test_other_kinds_of_outputs(visit, service, tokens, tmp_path, model, given, told):
    view, owners = begin_joint(service, tokens[Role.ANALYST], model=model, **given)
    shown = words_of(visit(Role.ANALYST).get(f"/joint-requests/{view.id}"))
    assert f"Private column {told} Public columns x" in shown
    sites = joint_sites(service, view.id, owners, tmp_path, several=bool(given))
    for _ in range(6):
        for site in sites.values():
            site.step()
    shown = words_of(visit(Role.ANALYST).get(f"/joint-requests/{view.id}"))
    assert "the release is there" in shown


def test_going_on_without_a_site(visit, begun):
    request, sites, _ = begun
    analyst, page = visit(Role.ANALYST), f"/joint-requests/{request}"
    sites["south"].step()
    (form,) = [
        each
        for each in analyst.page(page).forms
        if each["attributes"]["action"].endswith("continue")
    ]
    assert form["fields"]["without"] == "north"
    told = analyst.send(f"{page}/continue", {"without": ["north"]})
    # The answer of one site alone is no sum of several.
    assert told.status_code == 409
    assert "two sites or more" in told.text
    sites["north"].step()
    assert "Go on without some" in words_of(analyst.get(page))


def test_closing_it(visit, begun):
    request, sites, owners = begun
    page = f"/joint-requests/{request}"
    stranger = visit(Role.CUSTODIAN, owners["north"])
    assert "Close it" not in words_of(stranger.get(page))
    assert stranger.send(f"{page}/close").status_code == 404
    analyst = visit(Role.ANALYST)
    shown = words_of(analyst.send(f"{page}/close"))
    assert "it was closed" in shown
    assert "closed" in words_of(analyst.get("/joint-requests"))
    with pytest.raises(Exception, match="the request is closed"):
        sites["north"].step()


def test_others_see_that_it_is_there_and_analysts_their_own(visit, service, begun):
    from services import add_everything

    request = begun[0]
    for role in (Role.CUSTODIAN, Role.APPROVER):
        assert "a test" in words_of(visit(role).get("/joint-requests"))
    assert visit(Role.READER).get(f"/joint-requests/{request}").status_code == 403
    other = visit(Role.ANALYST, add_everything(service))
    assert other.get(f"/joint-requests/{request}").status_code == 200
