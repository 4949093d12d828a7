"""Quotas of a simulated site, as TOML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.cli.admin.group_options import TEXT_PARSERS
from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.model.snapshot import Budget, Group, Period
from carrel.hub.simulation.workload.quota_file import (
    read_quota,
    unlimited_group,
    unused,
    with_tenants,
)


def read(tmp_path: Path, text: str, *now: Group) -> tuple[Group, ...]:
    path = tmp_path / "quota.toml"
    path.write_text(text, encoding="utf-8")
    return read_quota(path, 48, now, TEXT_PARSERS)


def test_omitted_limits_are_those_of_the_pool(tmp_path: Path) -> None:
    text = '[groups.site]\n[groups.lab]\nparent = "site"\nguaranteed = 8\nweight = 2\nborrowing=0\n'
    root, lab = read(tmp_path, text)
    assert root == unlimited_group("site", 48)
    assert (lab.parent, lab.guaranteed, lab.weight, lab.borrowing) == ("site", 8, 2, 0)
    assert (lab.max_devices, lab.max_devices_per_user, lab.lending) == (48, 48, None)


def test_times_and_budgets_are_written_as_on_the_command_line(tmp_path: Path) -> None:
    (lab,) = read(tmp_path, '[groups.lab]\nmax_seconds = "1h30m"\nbudget = "300h/term"\n')
    assert lab.max_seconds == 5400
    assert lab.budget == Budget(device_seconds=300 * 3600, period=Period.TERM)
    (freed,) = read(tmp_path, '[groups.lab]\nbudget = "none"\n', lab)
    assert freed == replace(lab, budget=None)


def test_tenants_that_the_file_does_not_name_have_no_limits() -> None:
    given = Group(name="lab", max_devices=2)
    assert with_tenants([given], ["lab", "other"], 48) == (given, unlimited_group("other", 48))


def test_a_group_without_tenants_is_named() -> None:
    root, lab, typo = (Group(name=name) for name in ("site", "lab", "lba"))
    groups = (root, replace(lab, parent="site"), replace(typo, parent="site"))
    assert unused(groups, groups, {"lab"}) == ["lba"]
    assert unused([root], groups, {"lab"}) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("lab = 3\n", "has lab", id="no table of groups"),
        pytest.param("[groups]\nlab = 3\n", "groups.lab is 3", id="a number for a group"),
        pytest.param(
            "[groups.lab]\ncolour = 3\n", "'colour', which a replay does not use", id="unknown"
        ),
        pytest.param(
            "[groups.lab]\nidle_seconds = 60\n", "'idle_seconds', which a replay", id="no effect"
        ),
        pytest.param(
            "[groups.lab]\nmax_seconds = 60\n", r"max_seconds is 60\. Text", id="a bare number"
        ),
        pytest.param(
            '[groups.lab]\nmax_seconds = "2 weeks"\n',
            "max_seconds: Invalid duration: '2 weeks'",
            id="no time",
        ),
        pytest.param(
            '[groups.lab]\nbudget = "3h/day"\n',
            "lab.budget: Invalid budget: '3h/day'",
            id="no budget",
        ),
        pytest.param("[groups.lab]\nweight = 0\n", "weight is 0", id="no weight"),
        pytest.param("[groups.lab]\nguaranteed = -1\n", "guaranteed is -1", id="negative"),
        pytest.param("[groups.lab]\nguaranteed = true\n", "guaranteed is True", id="no number"),
        pytest.param("[groups.lab]\nguaranteed = 1.5\n", "guaranteed is 1.5", id="half a device"),
        pytest.param("[groups.lab]\nweight = nan\n", "weight is nan", id="not a number"),
        pytest.param(
            '[groups.lab]\nparent = "x"\n', "The parent 'x' of the group lab", id="orphan"
        ),
        pytest.param("[groups.lab\n", "cannot be read", id="no TOML"),
    ],
)
def test_invalid_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(tmp_path, text)
    with pytest.raises(InvalidInput, match=r"There is no file .*nowhere\.toml\."):
        read_quota(tmp_path / "nowhere.toml", 48)
