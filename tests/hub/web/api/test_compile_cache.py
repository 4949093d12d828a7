"""Users see and delete what their own jobs have compiled; administrators that of each user."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import cast

from carrel.hub.attempts.compile_caches import OwnerCompileCaches

from ...doubles import STUDENT1, TEACHER
from ..compile_caches import leave, offered
from ..fakes import API
from ..site import COMPILE_CACHE_BYTES, Site, site

__all__ = ["site"]

CACHE = f"{API}/compile-cache"


class LockOfADeletion:
    """A lock that is free again when the owner's folder has been deleted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_: object) -> None: ...


def test_the_own_cache_is_listed_with_its_limit_and_deleted(site: Site) -> None:
    assert site.api(STUDENT1).get(CACHE).json() == {
        "entries": [],
        "size": 0,
        "limit": COMPILE_CACHE_BYTES,
    }
    first, second = (leave(site, STUDENT1, name) for name in ("a.ipynb", "b.ipynb"))
    leave(site, TEACHER, "a.ipynb")
    found = site.api(STUDENT1).get(CACHE).json()
    sizes = [entry.pop("size") for entry in found["entries"]]
    used = [entry.pop("used_at") for entry in found["entries"]]
    assert found["size"] == sum(sizes) > 0
    assert used == sorted(used, reverse=True)
    common = {"group": "cs101", "image": "", "graphs": 2}
    assert sorted(found["entries"], key=lambda entry: entry["program"]) == [
        {"program": "a.ipynb", "request": first, **common},
        {"program": "b.ipynb", "request": second, **common},
    ]

    left = site.api(STUDENT1).delete(f"{CACHE}/{first}").json()
    assert [entry["request"] for entry in left["entries"]] == [second]
    assert site.api(STUDENT1).delete(f"{CACHE}/{first}").status_code == 404
    assert not offered(site, STUDENT1, "a.ipynb")
    assert offered(site, STUDENT1, "b.ipynb")
    assert site.api(STUDENT1).delete(CACHE).json()["entries"] == []
    assert site.api(STUDENT1).delete(CACHE).status_code == 200, "it is safe to repeat"
    assert not offered(site, STUDENT1, "b.ipynb")
    assert offered(site, TEACHER, "a.ipynb")


def test_an_administrator_sees_and_deletes_that_of_a_user_and_other_users_do_not(
    site: Site,
) -> None:
    request = leave(site, STUDENT1, "a.ipynb")
    of_student = f"{CACHE}?owner=student1"
    for who in (TEACHER, STUDENT1):
        for path in (f"{CACHE}?owner=admin", f"{CACHE}/{request}?owner=admin"):
            assert site.api(who).delete(path).status_code == 403
    assert site.api(TEACHER).get(of_student).status_code == 403
    assert site.api(TEACHER).delete(f"{CACHE}/{request}").status_code == 404
    assert site.api(STUDENT1).get(of_student).json() == site.api().get(of_student).json()
    assert [each["request"] for each in site.api().get(of_student).json()["entries"]] == [request]

    assert site.api().get(CACHE).json()["entries"] == []
    assert site.api().delete(of_student).json()["entries"] == []
    (change,) = site.api().get(f"{API}/audit").json()["changes"]
    assert (change["action"], change["target"], change["who"]) == (
        "compile cache clear",
        "student1",
        "admin",
    )
    assert not offered(site, STUDENT1, "a.ipynb")


def test_a_file_of_an_earlier_version_is_listed_and_a_damaged_one_deleted(
    site: Site, tmp_path: Path
) -> None:
    leave(site, STUDENT1, "a.ipynb")
    folder = tmp_path / "compile-caches" / "student1"
    (path,) = folder.iterdir()
    header, _, content = path.read_bytes().partition(b"\n")
    old = {k: v for k, v in json.loads(header).items() if k not in ("group", "image")}
    path.write_bytes(json.dumps(old).encode() + b"\n" + content)
    path.with_name("damaged.cache").write_bytes(b"{")
    (entry,) = site.api(STUDENT1).get(CACHE).json()["entries"]
    assert (entry["program"], entry["group"], entry["image"]) == ("a.ipynb", "", "")
    assert site.api(STUDENT1).delete(CACHE).json()["size"] == 0
    assert not folder.exists()


def test_what_a_job_leaves_while_its_owner_deletes_the_rest_is_kept(
    site: Site, tmp_path: Path
) -> None:
    caches = site.context.compile_caches
    assert isinstance(caches, OwnerCompileCaches)
    lock = LockOfADeletion(tmp_path / "compile-caches" / "student1")
    deleting = replace(caches, lock=cast(Lock, lock))
    made = leave(replace_caches(site, deleting), STUDENT1, "a.ipynb")
    assert [each["request"] for each in site.api(STUDENT1).get(CACHE).json()["entries"]] == [made]


def replace_caches(site: Site, caches: OwnerCompileCaches) -> Site:
    return replace(site, context=replace(site.context, compile_caches=caches))
