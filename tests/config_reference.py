"""Write docs/reference/configuration.md from the code: ``python -m tests.config_reference``."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path

from pydantic import ByteSize
from traitlets.config import Configurable

from carrel.hub.accounts.authenticator import CarrelAuthenticator
from carrel.hub.config import settings
from carrel.hub.config.notification_table import NotificationTable
from carrel.hub.config.open_link_table import OpenLinkTable
from carrel.hub.config.settings import Settings
from carrel.hub.config.site import DockerTable, NodeTable, SlurmTable
from carrel.spawners.sessions.lease_mixin import LeaseMixin
from carrel.spawners.sessions.local import LocalSession
from carrel.spawners.slurm.session import SlurmSession

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "configuration.md"
SOURCE = Path(settings.__file__).parents[2]
CODE = ("hub", "spawners", "extensions", "courses", "images")
VARIABLE = re.compile(r"\bCARREL_[A-Z_]+\b")

# Every variable that the code names, and nothing else: a test compares.
SET_BY_PEOPLE: Mapping[str, str] = {
    "CARREL_STATE": "the state folder, for administrator commands (`--state` overrides it)",
    "CARREL_URL": "the site that user commands connect to, instead of the one of `carrel login`",
    "CARREL_TOKEN": "the token for that site",
    "CARREL_LOG": "format of the service's log, `text` or `json`; overrides `log` in settings.json",
    "CARREL_KERNEL_LOG": "where the service reads errors of NVIDIA GPUs (Xid) instead of /dev/kmsg",
    "CARREL_CA_BUNDLE": "certificates of a TLS-inspecting proxy, for `carrel images build`",
    "CARREL_PROXY_COMMAND": "another `configurable-http-proxy`, with its arguments, for "
    "`carrel up`",
    "CARREL_EXECUTION_CACHE_BYTES": "the most bytes of compiled packages of `carrel.execution` "
    "that are kept in `~/.cache/carrel/execution`: 1 GiB unless it is set",
    "CARREL_JOB_": "prefix of the options of `papermill --engine carrel`, such as "
    "`CARREL_JOB_DEVICES=1`",
}
SET_BY_CARREL: Mapping[str, str] = {
    "CARREL_URL": "the service, as programs in sessions reach it",
    "CARREL_PUBLIC_URL": "the service, as browsers reach it; in sessions, for links",
    "CARREL_STATE": "the installation that the process belongs to",
    "CARREL_BASE_URL": "the path below which the site is served: `base_url` of settings.json",
    "CARREL_LEASE": "the lease that the process belongs to; its descendants inherit it",
    "CARREL_REQUEST": "the request",
    "CARREL_DEVICES": "the leased devices, as readable text",
    "CARREL_JOB_METER": "in jobs with devices on a cluster: what measures these",
    "CARREL_SESSION_METER": "in sessions on a cluster: what measures them from inside",
    "CARREL_OUTPUT_DIR": "in jobs: the folder whose files `carrel output --files` returns",
    "CARREL_MEMORY_BYTES": "in jobs with a memory limit, with the local engine and on a cluster: "
    "the limit",
    "CARREL_SPARK_FOLDERS": "in Python processes of `carrel.spark()`: where to find the modules of "
    "the notebook",
    "CARREL_PROGRESS": "in jobs: the file behind `carrel.progress`",
    "CARREL_REPORTS": "in jobs: the file behind `carrel.report`",
    "CARREL_TRIAL_REPORTS": "in sweeps whose trials are trained as one: the file of each trial, "
    "one a line",
    "CARREL_NOTICE": "in jobs: the file with the reason and end of a preemption notice; exists "
    "only during one",
    "CARREL_PACKAGES": "in jobs in containers: where kernels write the names of the packages "
    "that they have used",
    "CARREL_KNOWN_PACKAGES": "in warm containers, before they have a job: packages to import ahead",
    "CARREL_RECOVERY": "in sessions: what to do about a full home; set only when it is full",
    "CARREL_COURSE_DATA": "the read-only data of its course, if there are any",
    "CARREL_COURSE_FOLDER": "in sessions of graders: the course that formgrader shows",
    "CARREL_GRADES_NO_COURSE": "in sessions of other users: JupyterLab hides what only teachers "
    "use",
    "CARREL_SECRETS": "in jobs and sessions: the folder with a file for each of their secrets",
    "CARREL_SECRET_TICKET": "set by Carrel: fetches the secrets of a session, once",
    "CARREL_RESUMES": "in jobs: the ended job that this one resumes",
    "CARREL_ADDRESSES": "in jobs of several members: the addresses of all members by rank",
    "CARREL_MEMBER": "in jobs of several members: number of the member within its role, from 0",
    "CARREL_MEMBERS": "in jobs of several members: number of members of its role",
    "CARREL_ROLE": "in jobs of several members: the role of the member",
    "CARREL_SAVED": "in jobs: the file that the job touches when its work is saved",
    "CUDA_VISIBLE_DEVICES": "only the leased devices, by UUID",
    "CUDA_DEVICE_ORDER": "`PCI_BUS_ID`",
    "NVIDIA_VISIBLE_DEVICES": "the same for the container runtime; `void` without a real device",
    "ROCR_VISIBLE_DEVICES": "only the leased devices of AMD, by UUID; empty without one",
    "HIP_VISIBLE_DEVICES": "their positions, from 0; `-1` without one",
}

INTRODUCTION = """\
# Configuration

Three files in the state folder configure an installation: `settings.json`, written by `carrel up`,
and the optional `carrel.toml` and `jupyterhub_config.py`
([how to configure JupyterHub](../how-to/configure-jupyterhub.md)). Groups, quotas and accounts are
not configuration: change them while Carrel runs, with `carrel group` and `carrel user`.

This page is generated; after a change in the code, run `python -m tests.config_reference`.
"""


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION, "## The state folder\n", f"```text\n{_layout()}\n```\n"]
    parts += ["## settings.json\n", "Edit it while Carrel is stopped.\n", *_settings()]
    parts += [
        "\n## carrel.toml\n",
        "Read at each start. If it has an error, nothing starts and the error is shown.",
    ]
    parts += ['Write sizes as `"4GiB"`.\n', *_tables()]
    parts += ["\n## JupyterHub options of Carrel's own\n"]
    parts.append("`carrel up` sets the options without a default.\n")
    for title, owner, made_by in (
        ("LeaseMixin", LeaseMixin, "every session on a lease, with any engine"),
        ("LocalSession", LocalSession, "sessions as local processes (`carrel-local`)"),
        ("SlurmSession", SlurmSession, "sessions as jobs of a Slurm cluster (`carrel-slurm`)"),
        ("CarrelAuthenticator", CarrelAuthenticator, "the embedded accounts (`carrel`)"),
    ):
        parts += [f"### {title}\n", f"For {made_by}.\n", *_options(title, owner), ""]
    parts += ["## Environment variables that are read\n", *_table("variable", SET_BY_PEOPLE)]
    parts += ["\n## Environment variables of sessions and jobs\n"]
    parts += [*_table("variable", SET_BY_CARREL), ""]
    return "\n".join(parts)


def variables_in_code() -> set[str]:
    """Return the names of all environment variables in the source."""
    return {
        name
        for folder in CODE
        for path in (SOURCE / folder).rglob("*.py")
        if "node_modules" not in path.parts
        for name in VARIABLE.findall(path.read_text(encoding="utf-8"))
    }


def variables_on_the_page() -> set[str]:
    return {name for name in {**SET_BY_PEOPLE, **SET_BY_CARREL} if VARIABLE.fullmatch(name)}


def _layout() -> str:
    """Return the tree in the docstring of hub/config/settings.py."""
    lines = inspect.cleandoc(settings.__doc__ or "").split("\n")
    return "\n".join(line.strip() for line in lines if line.startswith("    "))


def _settings() -> Iterator[str]:
    meanings = _attributes(Settings)
    yield "| name | default | |"
    yield "| --- | --- | --- |"
    for each in fields(Settings):
        value = each.default if each.default_factory is MISSING else each.default_factory()
        default = "" if value is MISSING else f"`{json.dumps(value)}`"
        yield f"| `{each.name}` | {default} | {meanings.get(each.name, '')} |"


def _tables() -> Iterator[str]:
    """Yield the keys of the site file, one table after the other."""
    yield "| key | default | |"
    yield "| --- | --- | --- |"
    yield "| `engine` | | `local`, `docker` or `slurm`; overrides `--engine` |"
    for name, table in (
        ("[docker]", DockerTable),
        ("[slurm]", SlurmTable),
        ("[[nodes]]", NodeTable),
        ("[notifications]", NotificationTable),
        ("[open_links]", OpenLinkTable),
    ):
        meanings = _attributes(table)
        for key, field in table.model_fields.items():
            value = field.get_default()
            shown = "" if field.is_required() or value in (None, "", ()) else f"`{value}`"
            if isinstance(value, ByteSize):
                shown = f'`"{value.human_readable()}"`'
            yield f"| `{name} {key}` | {shown} | {meanings.get(key, '')} |"


def _attributes(owner: type) -> dict[str, str]:
    """The paragraph ``Attributes:`` of a class, by name; one line may tell of several."""
    _, _, below = inspect.cleandoc(owner.__doc__ or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in below.split("\n"):
        head, colon, meaning = line.strip().partition(":")
        if colon and not line.startswith("        "):
            names = head.split(", ")
            found |= dict.fromkeys(names, meaning.strip())
        elif line.strip():
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def _options(name: str, owner: type[Configurable]) -> Iterator[str]:
    """Yield the options that Carrel's class adds to those of its base classes."""
    yield "| option | default | |"
    yield "| --- | --- | --- |"
    for trait_name, trait in sorted(owner.class_traits(config=True).items()):
        home = next(base for base in owner.__mro__ if trait_name in vars(base))
        ours = home.__module__.startswith("carrel.")
        inherited = name != "LeaseMixin" and issubclass(LeaseMixin, home)
        if ours and not inherited:
            default = trait.default_value_repr()
            shown = "" if default in ("''", "traitlets.Undefined", "[]") else f"`{default}`"
            help_text = _markdown(" ".join(str(trait.help).split()))
            yield f"| `c.{name}.{trait_name}` | {shown} | {help_text} |"


def _markdown(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


def _table(title: str, rows: Mapping[str, str]) -> Iterable[str]:
    yield f"| {title} | |"
    yield "| --- | --- |"
    for name, meaning in rows.items():
        yield f"| `{name}` | {meaning} |"


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}")


if __name__ == "__main__":
    main()
