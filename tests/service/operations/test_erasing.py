"""Erasing: files that were sent are gone, their tables withdrawn, and their releases there."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from services import add_custodians, register, work_as, write_people

from cloakgp.service.access import Role
from cloakgp.service.errors import ConflictError, NotFoundError
from cloakgp.service.messages import Choices, Look, NewRequest, NewTable, PredictRequest
from cloakgp.service.models import Table, Upload
from cloakgp.service.operations import erasing
from cloakgp.service.operations.audits import list_events
from cloakgp.service.operations.erasing import (
    DAY,
    erase_old_files,
    erase_table,
    erase_upload,
    remove_leftovers,
)
from cloakgp.service.operations.jobs import cancel_job
from cloakgp.service.operations.releases import list_releases, predict_release
from cloakgp.service.operations.requests import make_request
from cloakgp.service.operations.tables import (
    list_tables,
    look_at_table,
    register_table,
    upload_table,
    withdraw_table,
)

QUICK = Choices(epsilon=0.5, delta=1e-6, stages="one", interval="off", learn="none")


@pytest.fixture
def custodian(service, tokens):
    return work_as(service, tokens[Role.CUSTODIAN])


@pytest.fixture
def analyst(service, tokens):
    return work_as(service, tokens[Role.ANALYST])


def files(service):
    return sorted(path.name for path in service.settings.uploads.iterdir())


def sent(custodian, tmp_path, name="p.csv"):
    return upload_table(custodian, name, received=write_people(tmp_path / "sent.csv")).id


def age_everything(service, days):
    """Let so many days go by."""
    with service.database.writing() as session:
        for upload in session.query(Upload):
            upload.created -= days * DAY
        for table in session.query(Table):
            table.withdrawn = table.withdrawn and table.withdrawn - days * DAY
    for path in service.settings.uploads.iterdir():
        os.utime(path, (path.stat().st_mtime - days * DAY,) * 2)


def test_the_file_of_a_table_is_erased_and_its_releases_stay(
    service, custodian, analyst, tokens, table
):
    make_request(analyst, NewRequest(table=table.id, choices=QUICK, purpose="a test"))
    assert len(files(service)) == 1
    assert erase_table(custodian, table.id).withdrawn
    assert files(service) == []
    assert list_tables(custodian) == []
    (release,) = list_releases(analyst)
    found = predict_release(analyst, release.id, PredictRequest(rows=[{"age": 9}]))
    assert len(found.rows) == 1
    with pytest.raises(ConflictError, match="withdrawn"):
        make_request(analyst, NewRequest(table=table.id, choices=QUICK, purpose="another"))
    # Again is no mistake.
    assert erase_table(custodian, table.id).withdrawn
    auditor = work_as(service, tokens[Role.AUDITOR])
    assert any((e.what, e.about) == ("file erased", "heights") for e in list_events(auditor))


def test_the_file_of_another_custodian_is_not_found(service, custodian, table):
    other = work_as(service, add_custodians(service, "oscar")["oscar"])
    with pytest.raises(NotFoundError, match="no such file"):
        erase_table(other, table.id)
    assert len(files(service)) == 1
    assert [each.id for each in list_tables(custodian)] == [table.id]


def test_nothing_is_erased_under_a_job(service, custodian, analyst, table):
    service.dispatcher.at_once = False
    asked = make_request(analyst, NewRequest(table=table.id, choices=QUICK, purpose="a test"))
    with pytest.raises(ConflictError, match=f"cancel job {asked.job.id}"):
        erase_table(custodian, table.id)
    assert len(files(service)) == 1
    cancel_job(analyst, asked.job.id)
    erase_table(custodian, table.id)
    assert files(service) == []


def test_every_table_of_a_file_is_withdrawn_with_it(service, custodian, tokens, tmp_path):
    table = register(service, tokens[Role.CUSTODIAN], tmp_path)
    upload = files(service)[0].partition(".")[0]
    other = NewTable(
        name="again", account="children", upload=upload, output="height", bounds=(40, 260)
    )
    register_table(custodian, other)
    erase_table(custodian, table.id)
    assert list_tables(custodian) == []
    with pytest.raises(NotFoundError):
        look_at_table(custodian, Look(upload=upload))


def test_what_was_not_sent_is_not_erased(service, custodian, tokens, tmp_path):
    path = write_people(service.settings.tables[0] / "there.csv")
    table = register(service, tokens[Role.CUSTODIAN], tmp_path, upload="", path=str(path))
    with pytest.raises(ConflictError, match="its own folder"):
        erase_table(custodian, table.id)
    assert path.exists()
    assert len(list_tables(custodian)) == 1


def test_a_file_that_became_no_table(service, custodian, tmp_path):
    upload = sent(custodian, tmp_path)
    stranger = replace(custodian, actor=replace(custodian.actor, id=99))
    for work, name in ((stranger, upload), (custodian, "none")):
        with pytest.raises(NotFoundError):
            erase_upload(work, name)
    erase_upload(custodian, upload)
    assert files(service) == []
    with pytest.raises(NotFoundError):
        erase_upload(custodian, upload)


def test_files_that_no_table_needs_are_kept_for_some_days(service, custodian, tmp_path, table):
    sent(custodian, tmp_path)
    age_everything(service, 29)
    assert erase_old_files(service) == 0
    age_everything(service, 2)
    assert erase_old_files(service) == 1
    assert len(files(service)) == 1
    withdraw_table(custodian, table.id)
    age_everything(service, 29)
    assert erase_old_files(service) == 0
    age_everything(service, 2)
    forever = replace(service, settings=replace(service.settings, keep_days=0))
    assert erase_old_files(forever) == 0
    assert erase_old_files(service) == 1
    assert files(service) == []


def test_what_a_service_that_died_left_is_removed(service, custodian, tmp_path, table, monkeypatch):
    """It died before a file was known, while one was sent, and before one was erased."""
    folder = service.settings.uploads
    kept = set(files(service))
    write_people(folder / "0123.csv")
    (folder / "receiving-x").mkdir()
    write_people(folder / "receiving-x" / "body")
    upload = sent(custodian, tmp_path)

    def die(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(erasing.Path, "unlink", die)
    with pytest.raises(KeyboardInterrupt):
        erase_upload(custodian, upload)
    monkeypatch.undo()
    assert remove_leftovers(service) == 0
    age_everything(service, 2)
    assert remove_leftovers(service) == 3
    assert set(files(service)) == kept
    assert [each.id for each in list_tables(custodian)] == [table.id]
