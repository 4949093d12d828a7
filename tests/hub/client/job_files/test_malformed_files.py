"""Malformed job files are refused with line and reason, and large ones within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.client.job_files import reader
from carrel.hub.client.job_files.job_fields import job_fields
from carrel.hub.client.job_files.yaml_source import MAX_FILE_BYTES, MalformedJobFile
from carrel.hub.schemas import JobIn

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(path for path in FOLDER.iterdir() if path.suffix != ".expected")
JOB = """\
protocolVersion: 2
name: job
type: job
prerequisites:
  - {type: dockerimage, name: image, uri: torch}
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {gpu: 1}
    commands:
      - python train.py
"""
MANIFEST = """\
name: model
memory: 1GiB
framework: {name: pytorch, version: latest, command: python train.py}
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
LONG_BOMB = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
ROLES = "".join(
    f"  role{n}: {{dockerImage: image, resourcePerInstance: {{gpu: 0}}, commands: [x]}}\n"
    for n in range(1000)
)


def changed(old: str, new: str, text: str = JOB) -> str:
    assert old in text
    return text.replace(old, new, 1)


CASES = {
    "empty": ("", 1, "The file is empty."),
    "no mapping": ("- a\n- b\n", 1, "This is not a job file of a known platform."),
    "another platform": ("\napiVersion: v1\n", 2, "This is not a job file of a known platform."),
    "bomb": (BOMB, 5, "The file is too large with its anchors written out."),
    "bomb of one text": (LONG_BOMB, 2, "The file is too large with its anchors written out."),
    "anchor in itself": ("a: 1\nb: &b [*b]\n", 2, "There is no anchor 'b' before this line."),
    "nested": ("[" * 2000, 1, "Values are nested too deeply."),
    "nested by anchors": (
        "a: &a " + "[" * 20 + "]" * 20 + "\nb: " + "[" * 20 + "*a" + "]" * 20,
        2,
        "Values are nested too deeply.",
    ),
    "tag": ("a: 1\nb: !!python/object:os.system x\n", 2, "A value has a tag."),
    "two documents": (f"{JOB}---\na: 1\n", 12, "A second document begins here."),
    "template": (changed("name: job", "name: {{name}}"), 2, "A key is not text."),
    "tab": (changed("  worker:", "\tworker:"), 7, "This is not valid YAML"),
    "key twice": (
        f"{JOB}name: other\n", 12,
        "The key 'name' is here a second time; it is also in line 2.",
    ),
    "control character": (changed("python", "\x07python"), 11, "control character"),
    "unknown version": (changed("2", "3"), 1, "The protocol version '3' is not known."),
    "unknown type": (changed("type: job", "type: data"), 3, "The file does not describe a job."),
    "no name": (changed("name: job\n", ""), 1, "name is missing."),
    "odd name": (changed("name: job", "name: a b"), 2, "The name of the job is not valid."),
    "no roles": (JOB[: JOB.index("taskRoles")] + "taskRoles: {}\n", 6, "no task roles."),
    "1000 roles": (
        JOB[: JOB.index("  worker")] + ROLES, 7, "The job has 1,000 task roles. At most 16",
    ),
    "1000 instances": (
        changed("    dockerImage", "    instances: 1000\n    dockerImage"), 7,
        "The job has 1,000 instances. At most 128",
    ),
    "names that collide": (
        JOB + JOB[JOB.index("  worker") :].replace("worker", "Worker"), 12,
        "The task roles worker (line 7) and Worker would both be 'worker'.",
    ),
    "name of a role": (changed("worker", "1st"), 7, "The name '1st' of a task role is not valid."),
    "long name of a role": (changed("worker", "w" * 33), 7, "cannot be kept. 1 to 32 letters"),
    "no image": (
        changed("    dockerImage: image\n", ""), 8, "taskRoles.worker.dockerImage is missing."
    ),
    "unknown image": (
        changed("dockerImage: image", "dockerImage: other"), 8,
        "There is no dockerimage 'other'. Known: image.",
    ),
    "unknown data": (
        changed("    commands", "    data: mnist\n    commands"), 10,
        "There is no data 'mnist'. Known: none.",
    ),
    "part of a device": (
        changed("gpu: 1", "gpu: 0.5"), 9,
        "taskRoles.worker.resourcePerInstance.gpu has no valid value. A whole number",
    ),
    "many devices": (changed("gpu: 1", "gpu: 99999999999999"), 9, "gpu has no valid value."),
    "resources": (
        changed("{gpu: 1}", "1"), 9, "taskRoles.worker.resourcePerInstance is not a mapping."
    ),
    "commands": (changed("- python train.py", "- echo: x"), 11, "has an item that is not a text."),
    "no commands": (
        changed("commands:\n      - python train.py", "commands: []"), 10, "has no commands."
    ),
    "unknown parameter": (
        changed("python train.py", "python <% $parameters.lr %>"), 11,
        "Task role worker: $parameters.lr has no value. Define it in parameters.",
    ),
    "unknown template": (
        changed("python train.py", "python <% lr %>"), 11, "The template 'lr' is not known."
    ),
    "open template": (
        changed("python train.py", "python <% $parameters.lr"), 11, "A template has no end."
    ),
    "secret": (
        changed("python train.py", "login <% $secrets.token %>") + "secrets: {other: x}\n",
        11,
        "Task role worker: $secrets.token is not in the file. Name it in secrets.",
    ),
    "secret in clear": (
        changed("python train.py", "login 'correct horse'")
        + "secrets: {token: correct horse}\n",
        12,
        "The value of the secret 'token' is also in a command, in clear.",
    ),
    "two images of a name": (
        changed("taskRoles", "  - {type: dockerimage, name: image, uri: x}\ntaskRoles"), 6,
        "The dockerimage 'image' is here a second time; it is also in line 5.",
    ),
    "priority": (
        f"{JOB}extras: {{hivedScheduler: {{jobPriorityClass: first}}}}\n", 12,
        "The priority class is not known. oppo, test, prod or crit.",
    ),
    "deployment": (
        f"{JOB}defaults: {{deployment: prod}}\n", 12, "There is no deployment 'prod'. Known: none."
    ),
    "long commands": (changed("train.py", "x" * 70_000), 5, "have 70,007 characters."),
    "memory": (
        changed("1GiB", "1 gigabyte", MANIFEST), 2, "The memory has no valid value. Such as 300MiB"
    ),
    "no command": (
        changed(", command: python train.py", "", MANIFEST), 3, "framework.command is missing."
    ),
    "no image of a framework": (
        changed("pytorch, version: latest", "custom", MANIFEST), 3,
        "A custom framework has no image.",
    ),
    "variables of version 1": (
        '{"jobName": "a", "image": "b",\n "jobEnvs": {"A B": 1},\n "taskRoles": []}', 2,
        "The variable 'A B' is not valid.",
    ),
    "names of version 1": (
        '{"jobName": "a", "image": "b",\n "taskRoles": [\n  {"name": "x"}, {"name": "x"}]}', 2,
        "Two task roles have the same name.",
    ),
}  # fmt: skip  # a file, a line and a reason


@pytest.mark.parametrize(("text", "line", "reason"), CASES.values(), ids=CASES.keys())
def test_it_is_refused_with_line_and_reason(text: str, line: int, reason: str) -> None:
    with pytest.raises(MalformedJobFile) as refused:
        job_fields("job.yaml", reader.read("job.yaml", text.encode()))
    assert str(refused.value).startswith(f"job.yaml, line {line}: ")
    assert reason in str(refused.value)
    assert "correct horse" not in str(refused.value)


def test_a_large_file_and_one_that_is_no_text_are_refused() -> None:
    with pytest.raises(MalformedJobFile, match=r"The file has 256 KiB\. At most 256 KiB\."):
        reader.read("job.yaml", b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(MalformedJobFile, match=r"line 2: This is not text in UTF-8\."):
        reader.read("job.yaml", b"name: x\ndescription: \xff\n")


def test_anchors_and_merged_mappings_are_values_like_others() -> None:
    text = changed("{gpu: 1}", "&small {gpu: 1, memoryMB: 1024}")
    text += """\
  other:
    dockerImage: image
    resourcePerInstance:
      <<: *small
      gpu: 3
    commands: [x]
"""
    worker, other = reader.read("job.yaml", text.encode()).roles
    assert (worker.devices, other.devices) == (1, 3)
    assert worker.memory_bytes == other.memory_bytes == 2**30


@pytest.mark.parametrize(
    ("memory", "size"),
    [
        ("1Gb", 10**9),
        ("16GB", 16 * 10**9),
        ("1GiB", 2**30),
        ("300MiB", 300 * 2**20),
        ("1.5 Gi", 3 * 2**29),
    ],
)
def test_memory_of_a_manifest(memory: str, size: int) -> None:
    text = changed("1GiB", memory, MANIFEST)
    assert reader.read("manifest.yml", text.encode()).roles[0].memory_bytes == size


edits = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.integers(0, 40),
        st.sampled_from(
            ["", "[]", "{}", "null", "-1", "x: ", "- ", "\n", "*values", '"', "<%", "9" * 20]
        )
        | st.text(max_size=5),
    ),
    min_size=1,
    max_size=3,
)


@given(st.sampled_from(FILES), edits)
def test_an_edited_file_is_read_or_refused_with_a_line(
    path: Path, changes: list[tuple[int, int, str]]
) -> None:
    text = path.read_text()
    for at, removed, added in changes:
        begin = at % len(text)
        text = text[:begin] + added + text[begin + removed :]
    try:
        job = reader.read(path.name, text.encode("utf-8", "replace"))
        JobIn.model_validate({"group": "-", **job_fields(path.name, job)})
    except MalformedJobFile as refused:
        assert 1 <= refused.line <= text.count("\n") + 2  # noqa: PT017  # either is right
