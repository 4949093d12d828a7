"""What a job has compiled is loaded by its owner's next job, and by no other user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from carrel.hub.attempts.compile_cache_side import COMPILED, COURSE, NEW, OWN
from carrel.hub.attempts.compile_caches import OwnerCompileCaches, copy_cache
from carrel.hub.controller.jobs import JobController
from carrel.hub.files.filenames import safe_name
from carrel.hub.records.identity import Identity
from carrel.hub.records.leases import LeaseRecord
from carrel.hub.records.requests import RequestRecord
from carrel.hub.requests.jobs import JobService
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.schemas import NotebookIn
from carrel.spawners.processes import lease_processes

from ...hub.doubles import STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from ...hub.requests.samples import job
from ...stores import new_store
from ..attempts import deadline
from ..compiler_double import add_compiler
from ..conftest import Desk
from ..notebooks import notebook, printed, read, text_of

CELLS = ("import torch", "print(torch.compile('first'))", "print(torch.compile('second'))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The service with the local engine."""

    context: Context
    caches: OwnerCompileCaches

    def run(self, who: Identity, *cells: str, name: str = "train.ipynb", **more: object) -> Ran:
        """Run a notebook as a job of a user, to its end."""
        c = self.context
        add_compiler(c.files.home(who.name))
        given = NotebookIn(name=name, content=text_of(notebook(*cells)))
        made = JobService(c).submit(
            who, job(notebook=given, devices=0, parameters={}, workdir="", **more)
        )
        starts = [Start(request_id=made.id, devices=())]
        (lease,) = c.store.grant(starts, now=c.clock(), lease_seconds=60.0)
        folder = c.files.attempt_folder(made.id, lease.epoch)
        controller = JobController(c)
        (handle,) = controller.start(lease, c.store.request(made.id)).values()
        process = lease_processes.find(handle)
        if process is not None:
            assert lease_processes.wait_gone([process], deadline())
        controller.collect(lease, c.store.request(made.id))
        return Ran(id=made.id, lease=lease, folder=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A job that has ended."""

    id: str
    lease: LeaseRecord
    folder: Path

    @property
    def printed(self) -> list[str]:
        return printed(read(self.folder / "output.ipynb")).split()

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text()


@pytest.fixture
def pool(desk: Desk, tmp_path: Path) -> Pool:
    caches = OwnerCompileCaches(tmp_path / "compile-caches", 1 << 20)
    context = build(new_store(), desk.backend, FakeHub(), Clock(1_800_000_000.0), tmp_path)
    return Pool(context=replace(context, compile_caches=caches), caches=caches)


def test_the_next_job_of_the_owner_loads_it_and_another_user_does_not(pool: Pool) -> None:
    first = pool.run(STUDENT1, *CELLS)
    again = pool.run(STUDENT1, *CELLS)
    other = pool.run(STUDENT2, *CELLS)
    assert [first.printed, again.printed, other.printed] == [
        ["cold", "cold"],
        ["warm", "warm"],
        ["cold", "cold"],
    ]
    assert "Kept 2 compiled graphs for your next job." in first.log
    assert f"Loaded 2 compiled graphs of your job {first.id}, of which 2 were used." in again.log
    assert "Kept" not in again.log
    assert "Loaded" not in other.log
    for ran in (first, again, other):
        left = {path.name for path in ran.folder.iterdir()}
        assert not left & {COMPILED, NEW, OWN}

    (kept,) = pool.caches.kept("student1")
    assert (kept.program, kept.request, kept.graphs) == ("train.ipynb", first.id, 2)
    folder = pool.caches.root / safe_name("student1")
    modes = [path.stat().st_mode & 0o077 for path in (pool.caches.root, folder, *folder.iterdir())]
    assert modes == [0, 0, 0]


def test_what_the_course_has_compiled_is_not_kept_for_a_student(pool: Pool) -> None:
    """Otherwise a teacher could not delete it."""
    pool.run(TEACHER, *CELLS[:2])
    (source,) = (pool.caches.root / safe_name("teacher")).iterdir()

    class WithCourse(OwnerCompileCaches):
        def offer(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> None:
            super().offer(request, lease, folder)
            copy_cache(source, folder / COURSE, mode=0o600, owner=None)

    caches = WithCourse(pool.caches.root, 1 << 20)
    with_course = replace(pool, context=replace(pool.context, compile_caches=caches))
    assert with_course.run(STUDENT1, *CELLS).printed == ["warm", "cold"]
    assert pool.run(STUDENT1, *CELLS).printed == ["cold", "warm"]


def test_a_job_that_compiles_nothing_or_does_not_want_the_cache_leaves_nothing(pool: Pool) -> None:
    plain = pool.run(STUDENT1, "import sys", "print('torch' in sys.modules)")
    off = pool.run(STUDENT1, *CELLS, labels={"compile-cache": "off"})
    assert (plain.printed, off.printed) == (["False"], ["cold", "cold"])
    assert pool.caches.kept("student1") == ()
    # The compiler used its default folder.
    assert (pool.context.files.home("student1") / "shared-by-all").is_dir()


def test_what_a_failed_job_has_compiled_is_kept_for_its_program_only(pool: Pool) -> None:
    failed = pool.run(STUDENT1, *CELLS[:2], "1 / 0")
    other = pool.run(STUDENT1, *CELLS, name="other.ipynb")
    more = pool.run(STUDENT1, *CELLS)
    assert [failed.printed, other.printed, more.printed] == [
        ["cold"],
        ["cold", "cold"],
        ["warm", "cold"],
    ]
    kept = {each.program: (each.request, each.graphs) for each in pool.caches.kept("student1")}
    assert kept == {"train.ipynb": (more.id, 2), "other.ipynb": (other.id, 2)}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[:-3], "What your job compiled is not used: it is damaged."),
        (lambda text: b"[" * 5000, "What your job compiled is not used: it is damaged."),
        (
            lambda text: text.replace(b'"machine": "', b'"machine": "0'),
            "its Python, its PyTorch or its processor was another one.",
        ),
    ],
)
def test_a_cache_that_does_not_fit_is_ignored_with_a_sentence(
    pool: Pool, damage: Callable[[bytes], bytes], reason: str
) -> None:
    pool.run(STUDENT1, *CELLS)
    (path,) = (pool.caches.root / "student1").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    again = pool.run(STUDENT1, *CELLS)
    assert again.printed == ["cold", "cold"]
    assert reason in again.log
    assert "Ran 3 cells without an error." in again.log
    # It is replaced.
    assert pool.run(STUDENT1, *CELLS).printed == ["warm", "warm"]


def test_code_that_cannot_be_loaded_costs_the_job_time_and_not_its_result(pool: Pool) -> None:
    compiled = "import os\nfolder = os.environ['TORCHINDUCTOR_CACHE_DIR']"
    damage = "open(os.path.join(folder, 'fxgraph/aa/second/code'), 'w').write('foreign')"
    damaged = pool.run(STUDENT1, *CELLS, f"{compiled}\n{damage}")
    again = pool.run(STUDENT1, *CELLS)
    assert again.printed == ["warm", "cold"]
    assert (
        f"What your job {damaged.id} compiled cannot be used here, so that this job compiled it "
        "again: ImportError: fxgraph/aa/second/code: undefined symbol."
    ) in again.log
    assert "Ran 3 cells without an error." in again.log
    # The damaged one is replaced.
    assert pool.run(STUDENT1, *CELLS).printed == ["cold", "warm"]
    assert pool.run(STUDENT1, *CELLS).printed == ["warm", "warm"]


def test_an_error_that_is_not_of_loaded_code_is_that_of_the_cell(pool: Pool) -> None:
    pool.run(STUDENT1, *CELLS)
    own = (
        "from torch._inductor import codecache\n"
        "codecache.FxGraphCache.file = staticmethod(lambda source: 1 / 0)\n"
        "torch.compile('new')"
    )
    failed = pool.run(STUDENT1, *CELLS, own)
    assert failed.printed == ["warm", "warm"]
    assert "ZeroDivisionError" in failed.log
    assert "cannot be used" not in failed.log


def test_caches_that_were_not_used_for_longest_are_dropped(pool: Pool) -> None:
    small = replace(pool, caches=replace(pool.caches, most_bytes=1200))
    small = replace(small, context=replace(pool.context, compile_caches=small.caches))
    for name in ("a.ipynb", "b.ipynb", "a.ipynb", "c.ipynb"):
        small.run(STUDENT1, *CELLS, name=name)
    sizes = [each.size for each in small.caches.kept("student1")]
    assert sum(sizes) <= 1200 < 3 * min(sizes), sizes
    assert [each.program for each in small.caches.kept("student1")] == ["c.ipynb", "a.ipynb"]
    small.caches.clear("student1")
    assert small.caches.kept("student1") == ()
    assert small.run(STUDENT1, *CELLS, name="a.ipynb").printed == ["cold", "cold"]


def test_a_job_can_neither_hand_a_foreign_file_to_the_service_nor_fill_it(
    pool: Pool, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    hostile = (
        "import os\nkernel = get_ipython().kernel\n"
        "folder = kernel.carrel_compile_cache.folder\n"
        f"os.symlink({str(secret)!r}, os.path.join(folder, 'compile-cache.new'))\n"
        "open(os.path.join(folder, 'compile-cache.json'), 'w').write("
        '\'{"loaded": [], "saved": {"graphs": 1, "bytes": 1}, "problems": ["a\\\\nb"]}\')'
    )
    ran = pool.run(STUDENT1, hostile)
    assert "carrel: a b\n" in ran.log
    assert pool.caches.kept("student1") == ()

    large = pool.run(STUDENT1, CELLS[0], "get_ipython().kernel.carrel_compile_cache.limit = 3",
                     CELLS[1])  # fmt: skip
    assert "What it compiled is not kept: it has 0 MiB, more than 0 MiB." in large.log
    assert pool.caches.kept("student1") == ()


def test_a_limit_crossed_after_the_last_cell_does_not_fail_the_job(pool: Pool) -> None:
    grows = (
        "cache = get_ipython().kernel.carrel_compile_cache\n"
        "def finish():\n"
        "    global held\n"
        "    held = b'x' * (2 << 30)\n"
        "    import signal\n"
        "    signal.pause()\n"
        "cache.finish = finish"
    )
    ran = pool.run(STUDENT1, grows, memory_bytes=1 << 30)
    assert "Ran 1 cell without an error." in ran.log
