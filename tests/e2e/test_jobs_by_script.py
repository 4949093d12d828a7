"""A student's work with jobs: by a shell script, by curl, by papermill, by jupyter-scheduler."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from carrel.hub.client.job_files import reader

from ..torch_packages import PACKAGES
from .all_reduce import ALL_REDUCE, BY_GLOO
from .papermill_runs import notebooks, read, shown, start, statuses, streamed
from .scheduler_server import SchedulerServer, form, scheduler_server
from .support import CARREL, ROOT, Installation, eventually, installation
from .widget_pages import write_notebook

SEPARATORS = "one\u2028two\u0085three"
DIGITS = ROOT / "courses" / "sample" / "digits.ipynb"

# `field NAME` reads one JSON object; everything else is the command line as students type it.
BY_COMMANDS = r"""
set -euo pipefail
field() { "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

# Submit with a parameter and a label, wait, fetch the notebook.
JOB=$(carrel submit digits.ipynb -p hidden 16 --devices 1 --time 5m --label sweep=7 --json \
    | field id)
carrel wait "$JOB" --follow --json > followed.jsonl
carrel output "$JOB" -o digits-out.ipynb --json | field bytes

# A command with a file of its own, which leaves a file behind.
echo 42 > data.txt
COMMAND=$(carrel run --input data.txt --label sweep=7 --time 2m --memory 1GiB --json -- \
    bash -c 'echo "read $(cat data.txt)"
             mkdir "$CARREL_OUTPUT_DIR/sub"
             cp data.txt "$CARREL_OUTPUT_DIR/sub/copy.txt"' | field id)
carrel wait "$COMMAND" --json > /dev/null
carrel logs "$COMMAND" --json
carrel output "$COMMAND" --files -o left --json | field file

# What a program prints may hold characters at which some libraries split lines.
SEPARATED=$(carrel submit separators.ipynb --time 5m --json | field id)
timeout 120 carrel wait "$SEPARATED" --follow --json > separated.jsonl
carrel logs "$SEPARATED" > separated.txt

# A Python script with cells is a notebook, and so is one without.
SCRIPT=$(carrel submit train.py -p lr 0.05 --time 5m --json | field id)
PLAIN=$(carrel submit plain.py --time 5m --json | field id)
carrel wait "$SCRIPT" "$PLAIN" --json > /dev/null
carrel output "$SCRIPT" -o train-out.ipynb --json > /dev/null
carrel output "$PLAIN" -o plain-out.ipynb --json > /dev/null

# Two at work are cancelled by their label; what they computed is kept.
SLOW=$(carrel submit slow.ipynb --time 5m --label sweep=8 --json | field id)
carrel wait "$SLOW" --follow --json | grep -m 1 '"cell_finished"' > /dev/null || true
carrel submit slow.ipynb --time 5m --label sweep=8 --json > /dev/null
carrel cancel --label sweep=8 --yes --json | wc -l
STATUS=0; carrel wait "$SLOW" --json > /dev/null || STATUS=$?
test "$STATUS" = 3
carrel output "$SLOW" -o partial.ipynb --json > /dev/null

# A cell fails, is corrected, and the job goes on with the variables of the cell before.
BROKEN=$(carrel submit broken.ipynb --time 5m --json | field id)
carrel wait "$BROKEN" --json > /dev/null || test $? = 1
carrel resume "$BROKEN" --dry-run --json > dry.json
RESUMED=$(carrel resume "$BROKEN" --notebook corrected.ipynb)
carrel wait "$RESUMED" --json > /dev/null
carrel output "$RESUMED" -o resumed.ipynb --json > /dev/null

# A job is halted, ends after its current cell, and goes on with the variables of that cell.
HALTED=$(carrel submit long.ipynb --time 5m --json | field id)
carrel wait "$HALTED" --follow --json | grep -m 1 '"cell_finished"' > /dev/null || true
carrel halt "$HALTED" --wait --json > halted.jsonl || test $? = 3
RESUMED=$(carrel resume "$HALTED")
carrel wait "$RESUMED" --json > /dev/null
carrel output "$RESUMED" -o continued.ipynb --json > /dev/null
carrel ps --all --label sweep=7 --json > listed.json
carrel queue --json > queue.json
echo "$JOB" > job.txt
"""

BY_CURL = r"""
set -euo pipefail
field() { "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
api() { curl -sS --fail-with-body --header "Authorization: token $CARREL_TOKEN" "$@"; }
API="$CARREL_URL/api/v1"

"$PYTHON" -c '
import json
body = {"group": "cs101", "seconds": 300, "labels": {"by": "curl"}, "idempotency_key": "curl-1",
        "notebook": {"name": "slow.ipynb", "content": open("slow.ipynb").read()}}
json.dump(body, open("body.json", "w"))'
JOB=$(api --json @body.json "$API/requests" | field id)
test "$JOB" = "$(api --json @body.json "$API/requests" | field id)"

# The stream until the first cell has finished, then from there on after a break.
api --no-buffer "$API/requests/$JOB/events" | sed '/^event: cell_finished/q' > first.txt || true
LAST=$(sed -n 's/^id: //p' first.txt | tail -n 1)
api --request DELETE "$API/requests/$JOB" | field state
api --header "Last-Event-ID: $LAST" "$API/requests/$JOB/events" > rest.txt
api "$API/requests?label=by=curl&kind=job&state=cancelled" > listed.json
api "$API/requests/$JOB/output" > partial.ipynb
api "$API/requests/$JOB/files" > files.json
api "$API/groups" > groups.json
api "$API/queue" > queue.json
echo "$JOB" > job.txt
"""

# Two members find each other by the variables that PyTorch also reads, and add their numbers.
OF_TWO_MEMBERS = r"""
set -euo pipefail
field() { "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
JOB=$(carrel run --nodes 2 --devices 1 --input reduce.py --time 2m --json -- \
    python reduce.py | field id)
carrel wait "$JOB" --json > /dev/null
carrel show "$JOB" > shown.txt
carrel show "$JOB" --json > shown.json
carrel logs "$JOB" > first.txt
carrel logs "$JOB" --member 1 > second.txt
carrel output "$JOB" --files -o left --json > /dev/null

# The failure of one member ends both.
cat > roles.toml <<'END'
[roles.adder]
count = 2
command = "python reduce.py fail"
END
FAILED=$(carrel run --roles roles.toml --input reduce.py --time 2m --json | field id)
STATUS=0; carrel wait "$FAILED" --json > failed.json || STATUS=$?
test "$STATUS" = 1
"""

BY_TORCHRUN = r"""
set -euo pipefail
field() { "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
# Two members with a device each; torchrun starts a process for each device.
JOB=$(carrel run --nodes 2 --devices 1 --input gloo.py --time 5m --json -- \
    env PYTHONPATH="$TORCH_FOLDER" python -m torch.distributed.run gloo.py | field id)
carrel wait "$JOB" --json > /dev/null
carrel logs "$JOB" > first.txt
carrel logs "$JOB" --member 1 > second.txt
# Without torchrun, each member is one process.
PLAIN=$(carrel run --nodes 2 --input gloo.py --time 5m --json -- \
    env PYTHONPATH="$TORCH_FOLDER" python gloo.py | field id)
carrel wait "$PLAIN" --json > /dev/null
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    state = tmp_path_factory.mktemp("jobs") / "state"
    with installation(state, "--simulated-devices", "2") as made:
        yield made


def notebook(*sources: str) -> str:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return str(nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=kernel)))


def story(site: Installation, folder: Path, script: str) -> str:
    folder.mkdir()
    shutil.copy(DIGITS, folder)
    # It sends repeatedly, so that a lost reader is noticed.
    slow = "import time\nfor s in range(280):\n    time.sleep(1)\n    print(s)"
    (folder / "slow.ipynb").write_text(notebook("print('kept')", slow, "print('never')"))
    (folder / "train.py").write_text('# %% tags=["parameters"]\nlr = 0.1\n# %%\nprint(lr)\n')
    (folder / "plain.py").write_text("x = 6\n\nprint(x * 7)\n")
    loads = "import os, time\ntime.sleep(0.2)\ndef pid():\n    return os.getpid()\nfirst = pid()"
    (folder / "broken.ipynb").write_text(notebook(loads, "print(frist)"))
    (folder / "corrected.ipynb").write_text(notebook(loads, "print(first != pid())"))
    waits = (
        "while not os.path.exists(os.environ['CARREL_NOTICE']):\n"
        "    time.sleep(0.1)\n    print('turn')\nturns = 1"
    )
    (folder / "long.ipynb").write_text(notebook(loads, waits, "print(turns, first != pid())"))
    (folder / "reduce.py").write_text(ALL_REDUCE)
    (folder / "gloo.py").write_text(BY_GLOO)
    (folder / "separators.ipynb").write_text(notebook(f"print({SEPARATORS!a})"))
    environment = {
        "PATH": f"{CARREL.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHON": str(CARREL.parent / "python"),
        "CARREL_URL": site.service,
        "CARREL_TOKEN": site.token("student1"),
        "NO_PROXY": "127.0.0.1",
        "TORCH_FOLDER": str(PACKAGES.folder),
    }
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def printed(path: Path) -> str:
    notebook: dict[str, Any] = json.loads(path.read_text())
    return "".join(
        "".join(output.get("text", ""))
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
    )


def hidden_from_student2(site: Installation, job: str) -> None:
    for part in ("", "/log", "/output", "/files", "/files/x", "/events"):
        answer = site.api("GET", f"/requests/{job}{part}", user="student2")
        assert answer.status_code == 404, part
        assert answer.json()["code"] == "not_found"


def test_by_a_shell_script_with_json_alone(site: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    said = story(site, folder, BY_COMMANDS)

    assert SEPARATORS in (folder / "separated.txt").read_text()
    separated = (folder / "separated.jsonl").read_text().removesuffix("\n").split("\n")
    changes = [json.loads(line) for line in separated]
    assert [each["state"] for each in changes if "state" in each][-1] == "succeeded"
    outputs = [each["data"]["output"] for each in changes if each.get("kind") == "cell_output"]
    assert SEPARATORS in "".join(str(output["text"]) for output in outputs)

    followed = [json.loads(line) for line in (folder / "followed.jsonl").read_text().splitlines()]
    kinds = [each["kind"] for each in followed if "request_id" in each]
    assert kinds.count("cell_started") == kinds.count("cell_finished") > 1
    assert followed[-1]["state"] == "succeeded"
    assert "accuracy" in printed(folder / "digits-out.ipynb")
    assert printed(folder / "train-out.ipynb") == "0.05\n"
    assert printed(folder / "plain-out.ipynb") == "42\n"
    assert json.loads((folder / "dry.json").read_text())["start"] == 2
    assert printed(folder / "resumed.ipynb") == "True\n"
    ended = json.loads((folder / "halted.jsonl").read_text().splitlines()[-1])
    assert (ended["state"], ended["cause"]["code"]) == ("cancelled", "halted")
    assert ended["cause"]["message"] == "Halted by its owner. It stopped after cell 2 of 3."
    assert printed(folder / "continued.ipynb").endswith("turn\n1 True\n")
    assert '{"text": "read 42\\n' in said
    assert (folder / "left" / "sub" / "copy.txt").read_text() == "42\n"
    assert "\n2\n" in said
    # The interrupted cell may print a message; the next one never ran.
    assert printed(folder / "partial.ipynb").startswith("kept\n")
    assert "never" not in printed(folder / "partial.ipynb")
    listed = json.loads((folder / "listed.json").read_text())["requests"]
    assert [(each["kind"], each["state"]) for each in listed] == [("job", "succeeded")] * 2
    hidden_from_student2(site, (folder / "job.txt").read_text().strip())


def test_a_job_of_two_members_that_add_their_numbers(site: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    story(site, folder, OF_TWO_MEMBERS)

    shown = json.loads((folder / "shown.json").read_text())
    assert (shown["state"], shown["devices"]) == ("succeeded", 2)
    members = shown["lease"]["members"]
    assert [(each["role"], each["number"], each["state"]) for each in members] == [
        ("worker", 0, "succeeded"),
        ("worker", 1, "succeeded"),
    ]
    for rank, name in enumerate(("first.txt", "second.txt")):
        log = (folder / name).read_text()
        assert f"worker {rank} of 2: sum 11\n{members[rank]['devices'][0]}\n" in log
        assert (folder / "left" / f"{rank}.txt").read_text() == "11"
    assert "Member 1:        worker 1, succeeded on" in (folder / "shown.txt").read_text()
    failed = json.loads((folder / "failed.json").read_text().splitlines()[-1])
    assert failed["cause"]["message"] == (
        "Member 1 of the role adder failed: `python reduce.py fail` exited with status 3"
    )


OF_OPENPAI = r"""
protocolVersion: 2
name: two_roles
type: job
parameters: {greeting: welcome}
prerequisites:
  - {type: dockerimage, name: image, uri: 'openpai/standard:python_3.6-pytorch_1.2.0-gpu'}
taskRoles:
  web_server:
    dockerImage: image
    resourcePerInstance: {gpu: 0, cpu: 1, memoryMB: 1024, ports: {web: 1}}
    commands:
      - echo <% $parameters.greeting %> > index.html
      - python -m http.server "$PAI_PORT_LIST_web_server_0_web"
  reader:
    instances: 2
    completion: {minSucceededInstances: 2}
    dockerImage: image
    resourcePerInstance: {gpu: 1, cpu: 1, memoryMB: 1024}
    commands:
      - URL=http://$PAI_HOST_IP_web_server_0:$PAI_PORT_LIST_web_server_0_web/
      - until TEXT=$(python -c 'import sys, urllib.request as r; print(r.build_opener(
        r.ProxyHandler({})).open(sys.argv[1]).read().decode())' "$URL" 2> /dev/null);
        do sleep 0.1; done
      - echo "$PAI_CURRENT_TASK_ROLE_NAME $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX $TEXT"
"""


def test_a_job_file_of_openpai_runs_as_it_is(site: Installation, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(OF_OPENPAI)
    wanted = ("submit", "--format", "openpai", str(path), "--time", "3m")
    ends = site.cli(*wanted, "--wait", "--json", user="student1").stdout.splitlines()
    job = json.loads(ends[-1])["id"]
    members = site.request(job, user="student1")["lease"]["members"]
    names = [(each["role"], each["number"]) for each in members]
    assert names == [("web-server", 0), ("reader", 0), ("reader", 1)]
    assert [each["state"] for each in members[1:]] == ["succeeded"] * 2
    assert members[0]["state"] in ("stopped", "succeeded")  # it ends well when it is told to stop
    for rank in (1, 2):
        log = site.api("GET", f"/requests/{job}/log?member={rank}", user="student1").text
        assert f"reader {rank - 1} welcome\n" in log
    exported = site.cli("export", job, user="student1").stdout
    again, first = (reader.read("job.yaml", t.encode()) for t in (exported, OF_OPENPAI))
    assert again.prologue == first.prologue
    assert [r.script for r in again.roles] == [r.script for r in first.roles]


@pytest.mark.slow
def test_torchrun_needs_no_options(site: Installation, tmp_path: Path) -> None:
    """``torchrun`` and gloo, where PyTorch is installed, be it for the tests only."""
    PACKAGES.load()
    folder = tmp_path / "work"
    story(site, folder, BY_TORCHRUN)
    for rank, name in enumerate(("first.txt", "second.txt")):
        assert f"rank {rank} of 2: sum 11\n" in (folder / name).read_text()


PIPELINE = """
[jobs.load]
command = "sh -c 'test -e allowed && echo 3 > loaded.txt'"
workdir = "pipeline"

[jobs.clean]
command = "sh -c 'echo 4 > cleaned.txt'"
workdir = "pipeline"

[jobs.sum]
command = "sh -c 'expr $(cat loaded.txt) + $(cat cleaned.txt) > sum.txt'"
workdir = "pipeline"
after = ["load", "clean"]
"""


def test_a_pipeline_goes_on_when_its_failed_job_was_resumed(
    site: Installation, tmp_path: Path
) -> None:
    home = site.state / "homes" / "student1" / "pipeline"
    home.mkdir(parents=True)
    path = tmp_path / "study.toml"
    path.write_text(PIPELINE)
    sent = site.cli("pipeline", str(path), "--json", user="student1").stdout.splitlines()
    jobs = {made["labels"]["pipeline-job"]: made["id"] for made in map(json.loads, sent)}
    site.wait_for(jobs["clean"], "succeeded", user="student1")
    site.wait_for(jobs["load"], "failed", user="student1")
    waiting = eventually(lambda: site.request(jobs["sum"], user="student1")["wait"], "a reason")
    assert waiting["reason"] == "dependency"
    eventually(
        lambda: (
            f"carrel resume {jobs['load']}" in site.cli("why", jobs["sum"], user="student1").stdout
        ),
        "it is said what helps",
    )
    (home / "allowed").touch()
    site.cli("resume", jobs["load"], user="student1")
    site.wait_for(jobs["sum"], "succeeded", user="student1")
    assert (home / "sum.txt").read_text() == "7\n"

    path.write_text(PIPELINE + 'time = "90d"\n')
    refused = site.cli("pipeline", str(path), user="student1", check=False)
    assert "sum: " in refused.stderr
    assert "are cancelled: load, clean." in refused.stderr


def test_by_curl_with_the_api_alone(site: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    story(site, folder, BY_CURL)

    first, rest = (folder / "first.txt").read_text(), (folder / "rest.txt").read_text()
    ids = [int(line[4:]) for line in (first + rest).splitlines() if line.startswith("id: ")]
    assert ids == sorted(set(ids))
    assert rest.count("event: end\n") == 1
    job = (folder / "job.txt").read_text().strip()
    listed = json.loads((folder / "listed.json").read_text())
    assert [(each["id"], each["cause"]["code"]) for each in listed["requests"]] == [
        (job, "cancelled")
    ]
    assert listed["next"] == ""
    # The interrupted cell may print a message; the next one never ran.
    assert printed(folder / "partial.ipynb").startswith("kept\n")
    assert "never" not in printed(folder / "partial.ipynb")
    assert json.loads((folder / "files.json").read_text())["files"] == []
    assert json.loads((folder / "groups.json").read_text())["groups"][0]["name"] == "cs101"
    hidden_from_student2(site, job)


def test_papermill_runs_in_the_pool_and_its_output_can_be_read_by_address(
    site: Installation, tmp_path: Path
) -> None:
    notebooks(tmp_path)
    words = ("in.ipynb", "out.ipynb", "--engine", "carrel", "-p", "lr", "0.05", "--log-output",
             "--progress-bar")  # fmt: skip  # one command
    run = start(site, tmp_path, *words, CARREL_JOB_DEVICES="1")
    _, said = run.communicate(timeout=120)
    assert run.returncode == 0, said
    executed = read(tmp_path / "out.ipynb")
    assert "0.05 " in shown(executed)[-1]
    assert "Simulated" in shown(executed)[-1]
    assert statuses(executed) == ["completed"] * 4  # with the injected cell
    assert executed.metadata.papermill.parameters == {"lr": 0.05}
    assert "Executing: 100%" in said
    assert "0.05 Simulated" in said
    assert "HTTP Request" not in said
    job = said.partition("Submitted ")[2].split()[0]
    assert site.request(job, user="student1")["devices"] == 1

    words = (f"carrel://{job}/output.ipynb", "again.ipynb", "--prepare-only")
    assert start(site, tmp_path, *words).wait(timeout=60) == 0
    assert shown(read(tmp_path / "again.ipynb")) == shown(executed)
    run = start(site, tmp_path, "in.ipynb", f"carrel://{job}/output.ipynb", "--engine", "carrel")
    assert "only the job itself writes its outputs" in run.communicate(timeout=60)[1]
    assert run.returncode == 1


def test_a_failing_cell_fails_as_with_papermills_own_engine(
    site: Installation, tmp_path: Path
) -> None:
    notebooks(tmp_path)
    run = start(site, tmp_path, "wrong.ipynb", "out.ipynb", "--engine", "carrel")
    _, said = run.communicate(timeout=120)
    assert run.returncode == 1
    assert "papermill.exceptions.PapermillExecutionError" in said
    assert "ZeroDivisionError" in said
    failed = read(tmp_path / "out.ipynb")
    assert "An Exception was encountered" in failed.cells[0].source
    assert shown(failed)[-2:] == ["before\n", ""]
    assert statuses(failed)[-2:] == ["failed", "pending"]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupt_of_papermill_cancels_the_job_and_keeps_its_output(
    site: Installation, tmp_path: Path, number: signal.Signals
) -> None:
    notebooks(tmp_path)
    run = start(site, tmp_path, "slow.ipynb", "out.ipynb", "--engine", "carrel")
    out = tmp_path / "out.ipynb"
    eventually(lambda: "kept\n" in streamed(out), "the first cell is streamed")
    run.send_signal(number)
    _, said = run.communicate(timeout=60)
    assert run.returncode != 0
    job = said.partition("Submitted ")[2].split()[0]
    assert f"Cancelled {job}." in said
    site.wait_for(job, "cancelled", user="student1")
    assert "kept\n" in shown(read(out))
    assert statuses(read(out))[-1] == "pending"


@pytest.fixture(scope="module")
def notebook_jobs(site: Installation) -> Iterator[SchedulerServer]:
    with scheduler_server(site) as made:
        yield made


def test_a_job_of_jupyter_scheduler_is_a_request_and_its_outputs_are_added_to_the_home(
    site: Installation, notebook_jobs: SchedulerServer
) -> None:
    server = notebook_jobs
    (environment,) = server.get("runtime_environments")
    assert (environment["name"], environment["label"]) == ("cs101", "cs101")
    assert environment["compute_types"] == ["no device", "1 device", "2 devices"]
    assert [each["label"] for each in environment["output_formats"]] == ["Notebook", "HTML"]

    writes = "import os, pathlib\npathlib.Path(os.environ['CARREL_OUTPUT_DIR'], 'x.txt').touch()"
    path = server.home / "deep" / "train.ipynb"
    write_notebook(path, "print(lr, names)", writes, parameters="lr = 0.1\nnames = []")
    job = server.create(
        "deep/train.ipynb",
        name="My training",
        compute_type="1 device",
        parameters={"lr": "0.05", "names": "['a', 'b']", "carrel.time": "5m"},
        tags=["first", "second"],
    )
    done = server.wait_for(job, "COMPLETED")
    request = site.request(job, user="student1")
    assert (request["devices"], request["seconds"], request["workdir"]) == (1, 300, "deep")
    assert request["parameters"] == {"lr": 0.05, "names": ["a", "b"]}
    assert (done["name"], done["tags"], done["compute_type"]) == (
        "My training",
        ["first", "second"],
        "1 device",
    )
    assert done["parameters"] == {"lr": "0.05", "names": '["a", "b"]', "carrel.time": "5m"}
    assert (done["downloaded"], done["status_message"]) == (False, None)
    paths = {each["file_format"]: each["file_path"] for each in done["job_files"]}
    assert paths == {"ipynb": None, "html": None, "input": "deep/train.ipynb"}

    assert server.call("GET", f"jobs/{job}/download_files").status_code == 204
    done = server.get(f"jobs/{job}")
    paths = {each["file_format"]: server.home / each["file_path"] for each in done["job_files"]}
    assert done["downloaded"]
    assert paths["ipynb"].parent == server.home / "jobs" / f"train-{job}"
    assert "0.05 ['a', 'b']\n" in shown(read(paths["ipynb"]))
    assert "0.05" in paths["html"].read_text()
    assert [each.name for each in paths["files"].iterdir()] == ["x.txt"]

    paths["ipynb"].write_text("my own notes")
    paths["html"].unlink()
    assert server.call("GET", f"jobs/{job}/download_files").status_code == 204
    assert paths["ipynb"].read_text() == "my own notes"
    assert paths["html"].exists()

    (listed,) = server.get("jobs?sort_by=desc(create_time)&max_items=25&tags=second")["jobs"]
    assert listed == {name: value for name, value in done.items() if value is not None}
    assert server.call("DELETE", f"jobs/{job}").status_code == 204
    assert job not in [each["job_id"] for each in server.get("jobs")["jobs"]]
    assert site.request(job, user="student1")["state"] == "succeeded"


def test_jupyter_scheduler_shows_the_reason_of_a_wait_and_of_a_refusal(
    site: Installation, notebook_jobs: SchedulerServer
) -> None:
    server = notebook_jobs
    (server.home / "waiting.ipynb").write_text(notebook("import time\ntime.sleep(280)"))
    (server.home / "bad.ipynb").write_text("{}")
    running = server.create("waiting.ipynb", compute_type="2 devices", idempotency_token="once")
    assert (
        server.create("waiting.ipynb", compute_type="2 devices", idempotency_token="once")
        == running
    )
    server.wait_for(running, "IN_PROGRESS")
    queued = server.create("waiting.ipynb", compute_type="1 device")
    # A request has no wait before its first cycle.
    wait = eventually(lambda: site.request(queued, user="student1")["wait"], "why it waits")
    found = server.wait_for(queued, "QUEUED")
    assert found["status_message"] == wait["sentence"]
    assert server.get("jobs/count?status=queued") == {"count": 1}

    assert server.call("DELETE", f"jobs/{queued}").status_code == 204
    assert site.wait_for(queued, "cancelled", user="student1")
    assert server.call("PATCH", f"jobs/{running}", status="STOPPED").status_code == 204
    assert server.wait_for(running, "STOPPED")["status_message"]

    for change, refusal in (
        ({"compute_type": "9 devices"}, "Choose one of: no device, 1 device, 2 devices."),
        ({"runtime_environment_name": "cs102"}, "There is no environment 'cs102'."),
        ({"parameters": {"carrel.time": "soon"}}, "Invalid duration: 'soon'."),
        ({"parameters": {"carrel.time": "90d"}}, "at most"),
        ({"parameters": {"carrel.gpu": "1"}}, "There is no option 'carrel.gpu'."),
        ({"input_uri": "gone.ipynb"}, "Input path 'gone.ipynb' does not exist."),
        ({"input_uri": "bad.ipynb"}, "it has no list of cells"),
    ):
        assert refusal in server.refusal("jobs", **form("waiting.ipynb", **change))
    assert len(server.get("jobs?name=waiting")["jobs"]) == 1


def test_a_job_definition_is_a_schedule_of_the_service(
    site: Installation, notebook_jobs: SchedulerServer
) -> None:
    server = notebook_jobs
    folder = server.home / "daily"
    write_notebook(folder / "n.ipynb", "print(day, open('data.txt').read())", parameters="day = 0")
    (folder / "data.txt").write_text("as it was")
    values = {"day": "1", "carrel.time": "5m"}
    daily = form("daily/n.ipynb", name="Daily", parameters=values, package_input_folder=True)
    assert "Five fields" in server.refusal("job_definitions", **daily, schedule="never")
    zone = "Europe/Berlin"
    made = server.call("POST", "job_definitions", **daily, schedule="0 6 * * *", timezone=zone)
    definition = made.json()["job_definition_id"]
    (schedule,) = site.api("GET", "/schedules", user="student1").json()["schedules"]
    assert (schedule["id"], schedule["cron"], schedule["zone"]) == (definition, "0 6 * * *", zone)

    at = f"job_definitions/{definition}"
    (listed,) = server.get("job_definitions?sort_by=desc(create_time)")["job_definitions"]
    found = server.get(at)
    assert (listed["name"], listed["schedule"], listed["active"]) == ("Daily", "0 6 * * *", True)
    assert (found["parameters"], found["package_input_folder"]) == (values, True)
    assert server.call("PATCH", at, active=False).status_code == 204
    assert server.get(at)["active"] is False
    change = {"schedule": "0 7 * * *", "timezone": "UTC", "input_uri": "n.ipynb"}
    assert server.call("PATCH", at, **change).status_code == 204
    assert (server.get(at)["schedule"], server.get(at)["timezone"]) == ("0 7 * * *", "UTC")
    other = server.call("PATCH", at, input_uri="daily/n.ipynb")
    assert "cannot be replaced" in other.json()["message"]

    (folder / "data.txt").write_text("changed")
    longer = server.refusal(f"{at}/jobs", parameters={"day": "2", "carrel.time": "6m"})
    assert "has the options of the definition" in longer
    again = {**values, "day": "2"}
    job = server.call("POST", f"{at}/jobs", parameters=again).json()["job_id"]
    done = server.wait_for(job, "COMPLETED")
    assert (done["job_definition_id"], done["parameters"]["day"]) == (definition, "2")
    output = site.api("GET", f"/requests/{job}/output", user="student1").text
    assert "2 as it was" in output
    assert done["parameters"]["carrel.time"] == "5m"
    own = server.get(f"jobs?job_definition_id={definition}")["jobs"]
    assert [each["job_id"] for each in own] == [job]
    assert server.call("DELETE", at).status_code == 204
    assert server.get("job_definitions")["job_definitions"] == []
    assert server.get(f"jobs/{job}")["status"] == "COMPLETED"
