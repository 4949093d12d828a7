"""Reading traces: the four formats, special cases, and errors of malformed lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.scheduling.model.snapshot import Arrangement, Share
from carrel.hub.simulation.workload.formats import FORMATS
from carrel.hub.simulation.workload.jobs import BadLine, Gang, Trace
from carrel.hub.simulation.workload.reader import Selection, first_moment, last_moment, read_trace

from ....memory import peak_memory
from ..kit import shared, week_of_philly

PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
HELIOS = (
    "# a comment\njob_id,user,tenant,class,submit_time,num_chips,chip_type,num_nodes,duration_s,"
    "walltime_limit_s,final_status\n"
)
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)


def read(
    tmp_path: Path, form: str, text: str, selection: Selection | None = None, *, skip: bool = False
) -> Trace:
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return read_trace(path, FORMATS[form], selection, skip_bad=skip)


def test_jobs_come_in_the_order_of_submission_and_durations_are_cut(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "philly",
        PHILLY + "1970-01-01 00:00:09,66.9,2,133.8,a\n1970-01-01 00:00:07,5.0,1,5.0,b\n",
    )
    assert [(j.id, j.submitted_at, j.seconds, j.devices, j.tenant) for j in trace.jobs] == [
        ("line-3", 7.0, 5.0, 1, "b"),
        ("line-2", 9.0, 66.0, 2, "a"),
    ]


def test_equal_moments_and_equal_lines_keep_their_place(tmp_path: Path) -> None:
    line = "1970-01-01 00:00:07,5.0,1,5.0,b\n"
    trace = read(tmp_path, "philly", PHILLY + line * 3)
    assert [job.id for job in trace.jobs] == ["line-2", "line-3", "line-4"]


def test_a_virtual_cluster_that_looks_like_a_number_is_text(tmp_path: Path) -> None:
    lines = "1970-01-01,5.0,1,5.0,6214e9\n1970-01-01,5.0,1,5.0,6214000000000.0\n"
    trace = read(tmp_path, "philly", PHILLY + lines, Selection(where={"cluster": "6214e9"}))
    assert [job.tenant for job in trace.jobs] == ["6214e9"]


def test_the_limit_that_a_converter_made_of_the_duration_is_left_alone(tmp_path: Path) -> None:
    line = "7,ada,vc,finetune,5835000000,128,,16,24.0,24.0,CANCELED\n"
    (job,) = read(tmp_path, "helios", HELIOS + line).jobs
    assert (job.id, job.user, job.tenant, job.devices) == ("7", "ada", "vc", 128)
    assert (job.submitted_at, job.seconds, job.limit) == (5835.0, 24.0, None)


def test_pods_without_a_start_or_a_device_are_counted_and_shares_are_shares(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        "openb",
        OPENB
        + "p1,1,1,1,460,,LS,Running,10,50,20\n"
        + "p2,1,1,1,1000,,LS,Pending,10,50,\n"
        + "p3,1,1,0,0,,LS,Running,10,50,20\n"
        + "p4,1,1,8,1000,,LS,Running,11,50,20\n",
    )
    assert [(j.id, j.devices, j.seconds, j.share) for j in trace.jobs] == [
        ("p1", 1, 30.0, Share(compute=0.46)),
        ("p4", 8, 30.0, None),
    ]
    assert sorted(trace.left_out.values()) == [1, 1]


def test_a_custom_table_needs_three_columns_and_accepts_more(tmp_path: Path) -> None:
    short = read(tmp_path, "csv", "submitted_at,seconds,devices\n3,10,1\n")
    assert [(j.id, j.user, j.tenant, j.limit) for j in short.jobs] == [("line-2", "", "", None)]
    full = "id,user,tenant,submitted_at,seconds,devices,limit,share\na,u,t,3,10,1,60,0.5\n"
    (job,) = read(tmp_path, "csv", full).jobs
    assert (job.id, job.user, job.tenant, job.limit) == ("a", "u", "t", 60.0)
    assert job.size == 0.5


OWN = "submitted_at,seconds,devices,limit,share\n"


@pytest.mark.parametrize("share", ["0.5", "1"])
def test_a_share_is_a_part_of_one_device(tmp_path: Path, share: str) -> None:
    text = f"{OWN}1,10,2,,\n1,10,2,,{share}\n"
    with pytest.raises(InvalidInput, match=f"line 3: share is '{share}' and devices is 2") as no:
        read(tmp_path, "csv", text)
    assert "With a share, devices must be 1" in no.value.accepted
    trace = read(tmp_path, "csv", text, skip=True)
    assert ([job.size for job in trace.jobs], [bad.number for bad in trace.bad]) == ([2], [3])


GANGS = "submitted_at,seconds,devices,members,minimum,arrangement,model\n"


def test_a_job_may_name_its_members_and_its_model(tmp_path: Path) -> None:
    lines = "1,10,8,4,2,spread,\n2,10,8,4,,,A100\n3,10,8,,,,\n4,10,8,1,1,pack, A100\n"
    trace = read(tmp_path, "csv", GANGS + lines)
    assert [(job.devices, job.gang, job.model) for job in trace.jobs] == [
        (8, Gang(members=4, minimum=2, arrangement=Arrangement.SPREAD), None),
        (8, Gang(members=4, minimum=4), "A100"),
        (8, None, None),
        (8, Gang(members=1, minimum=1), "A100"),
    ]


def test_without_these_columns_a_job_has_no_members(tmp_path: Path) -> None:
    (job,) = read(tmp_path, "csv", f"{OWN}1,10,2,,\n").jobs
    assert (job.gang, job.model) == (None, None)


@pytest.mark.parametrize(
    ("line", "said", "accepted"),
    [
        ("1,10,8,3,,,", "members is '3' and devices is 8", "a multiple of members"),
        ("1,10,8,0,,,", "members is '0'", "at least 1"),
        ("1,10,8,two,,,", "members is 'two'", "A whole number"),
        ("1,10,8,4,5,,", "minimum is '5' and members is 4", "at most the number of members"),
        ("1,10,8,4,0,,", "minimum is '0'", "at least 1"),
        ("1,10,8,4,,apart,", "arrangement is 'apart'", "pack or spread or node is accepted"),
        ("1,10,8,,2,,", "minimum is '2' and members is empty", "leave minimum empty"),
        ("1,10,8,,,pack,", "arrangement is 'pack' and members is", "leave arrangement empty"),
    ],
)
def test_an_invalid_gang_is_refused_with_its_line(
    tmp_path: Path, line: str, said: str, accepted: str
) -> None:
    text = f"{GANGS}1,10,2,,,,\n{line}\n"
    with pytest.raises(InvalidInput, match=f"line 3: {said}") as refused:
        read(tmp_path, "csv", text)
    assert accepted in refused.value.accepted
    assert [bad.number for bad in read(tmp_path, "csv", text, skip=True).bad] == [3]


@pytest.mark.parametrize(
    ("form", "header", "line", "said"),
    [
        pytest.param("csv", OWN, "1,1e308,1,,", "seconds is '1e308'", id="csv seconds"),
        pytest.param("csv", OWN, "1,inf,1,,", "seconds is 'inf'", id="csv not finite"),
        pytest.param("csv", OWN, "1,1,1,1e9,", "limit is '1e9'", id="csv limit"),
        pytest.param("csv", OWN, "1e308,1,1,,", "'1e308' is not a time", id="csv submission"),
        pytest.param("csv", OWN, "-1e12,1,1,,", "'-1e12' is not a time", id="csv long before"),
        pytest.param(
            "philly", PHILLY, "1e12,1,1,1,a", "'1e12' is not a time", id="philly submission"
        ),
        pytest.param("philly", PHILLY, "1,4e8,1,1,a", "duration is '4e8'", id="philly duration"),
        pytest.param(
            "helios",
            HELIOS,
            "7,ada,vc,x,1e300,1,,1,24.0,24.0,DONE",
            "submit_time is '1e300'",
            id="helios submission",
        ),
        pytest.param(
            "helios",
            HELIOS,
            "7,ada,vc,x,1,1,,1,1e300,24.0,DONE",
            "duration_s is '1e300'",
            id="helios duration",
        ),
        pytest.param(
            "openb",
            OPENB,
            "p1,1,1,1,460,,LS,Running,1e300,50,20",
            "creation_time is '1e300'",
            id="openb submission",
        ),
        pytest.param(
            "openb",
            OPENB,
            "p1,1,1,1,460,,LS,Running,10,1e308,-1e308",
            "scheduled_time is '-1e308'",
            id="openb start",
        ),
        pytest.param(
            "openb",
            OPENB,
            "p1,1,1,1,460,,LS,Running,10,1e10,20",
            "deletion_time less scheduled_time is '9999999980.0'",
            id="openb duration",
        ),
    ],
)
def test_impossible_times_are_refused_in_every_format(
    tmp_path: Path, form: str, header: str, line: str, said: str
) -> None:
    number = header.count("\n") + 1
    with pytest.raises(InvalidInput, match=f"line {number}: {said}"):
        read(tmp_path, form, f"{header}{line}\n")
    trace = read(tmp_path, form, f"{header}{line}\n", skip=True)
    assert (trace.jobs, [bad.number for bad in trace.bad]) == ((), [number])


def test_refused_times_name_the_longest_accepted_ones(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, "csv", OWN + "1,315360001,1,,\n")
    assert "0 to 315,360,000 seconds (ten years) are accepted." in refused.value.accepted
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, "csv", OWN + "253402300801,1,1,,\n")
    assert "up to 253,402,300,800 before or after 1970" in refused.value.accepted
    (job,) = read(tmp_path, "csv", OWN + "253402300800,315360000,1,,\n").jobs
    assert (job.submitted_at, job.seconds) == (253_402_300_800.0, 315_360_000.0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("1970-01-01,x,1,1,a", "line 3: duration is 'x'", id="no number"),
        pytest.param("1970-01-01,nan,1,1,a", "line 3: duration is 'nan'", id="not a number"),
        pytest.param("1970-01-01,-4,1,1,a", "line 3: duration is '-4'", id="negative"),
        pytest.param("1970-01-01,4,0,1,a", "line 3: num_gpus is '0'", id="no device"),
        pytest.param("1970-01-01,4,1.5,1,a", "line 3: num_gpus is '1.5'", id="half a device"),
        pytest.param("yesterday,4,1,1,a", "line 3: 'yesterday' is not a time", id="no date"),
        pytest.param("1970-01-01,4,1", "line 3: It has 3 cells", id="too few cells"),
        pytest.param("1970-01-01,4,1,1,a,b", "line 3: It has 6 cells", id="too many cells"),
    ],
)
def test_a_malformed_line_is_named_and_skipped_only_when_asked(
    tmp_path: Path, line: str, said: str
) -> None:
    text = f"{PHILLY}1970-01-01,5.0,1,5.0,b\n{line}\n1970-01-02,5.0,1,5.0,b\n"
    with pytest.raises(InvalidInput, match=said) as refused:
        read(tmp_path, "philly", text)
    assert "--skip-bad" in refused.value.accepted
    trace = read(tmp_path, "philly", text, skip=True)
    assert [job.id for job in trace.jobs] == ["line-2", "line-4"]
    assert [bad.number for bad in trace.bad] == [3]


def test_comments_and_empty_lines_count_as_lines(tmp_path: Path) -> None:
    line = "7,ada,vc,x,oops,1,,1,24.0,24.0,DONE\n"
    trace = read(tmp_path, "helios", HELIOS + "\n# another\n" + line, skip=True)
    assert [bad.number for bad in trace.bad] == [5]


def test_a_repeated_id_is_refused(tmp_path: Path) -> None:
    text = "id,submitted_at,seconds,devices\na,1,1,1\na,2,1,1\n"
    with pytest.raises(InvalidInput, match="line 3: The id 'a' is used in an earlier line too"):
        read(tmp_path, "csv", text)
    trace = read(tmp_path, "csv", text, skip=True)
    assert trace.bad == (BadLine(number=3, why="The id 'a' is used in an earlier line too."),)


def test_lines_that_are_not_selected_are_not_checked(tmp_path: Path) -> None:
    text = PHILLY + "1970-01-01,x,1,1,a\n1970-01-01,5,1,1,b\n"
    trace = read(tmp_path, "philly", text, Selection(where={"cluster": "b"}))
    assert [job.tenant for job in trace.jobs] == ["b"]


@pytest.mark.parametrize(
    ("since", "until", "kept"),
    [
        pytest.param("1970-01-02", "1970-01-02", [1, 2], id="a day is meant to its end"),
        pytest.param("1970-01-02", "1970-01-02 00:00", [1], id="both ends belong to it"),
        pytest.param("86400", "86401", [1], id="seconds"),
        pytest.param("1970-01-02T00:00:01", "1970-01-09", [2, 3], id="with a T"),
    ],
)
def test_the_time_of_submission_selects(
    tmp_path: Path, since: str, until: str, kept: list[int]
) -> None:
    moments = ["1970-01-01 23:59:59", "1970-01-02", "1970-01-02 23:59:59", "1970-01-03"]
    lines = "".join(f"{moment},5,1,5,vc\n" for moment in moments)
    selection = Selection(since=first_moment(since), until=last_moment(until))
    trace = read(tmp_path, "philly", PHILLY + lines, selection)
    assert [job.id for job in trace.jobs] == [f"line-{number + 2}" for number in kept]


def test_digits_alone_are_seconds_and_never_a_date(tmp_path: Path) -> None:
    assert first_moment("20171001") == last_moment("20171001") == 20_171_001.0
    (job,) = read(tmp_path, "csv", "submitted_at,seconds,devices\n12901231,1,1\n").jobs
    assert job.submitted_at == 12_901_231.0


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n"])
def test_a_file_without_the_columns_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match="has no column submitted_at"):
        read(tmp_path, "csv", text)


def test_a_missing_selection_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no column 'queue'") as refused:
        read(tmp_path, "philly", PHILLY, Selection(where={"queue": "x"}))
    assert "cluster" in refused.value.accepted


def test_missing_and_truncated_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no file .*nowhere\.csv\.") as refused:
        read_trace(tmp_path / "nowhere.csv", FORMATS["csv"])
    assert "table of jobs" in refused.value.accepted
    with pytest.raises(InvalidInput, match=r"cannot be read: Is a directory\."):
        read_trace(tmp_path, FORMATS["csv"])
    broken = tmp_path / "broken.csv.gz"
    whole = gzip.compress(b"submitted_at,seconds,devices\n" + b"1,1,1\n" * 9)
    broken.write_bytes(whole[:-12])
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_trace(broken, FORMATS["csv"])


def test_damaged_compression_and_endless_lines_are_refused(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(b"submitted_at,seconds,devices\n" + b"1,1,1\n" * 999))
    whole[20] ^= 0xFF
    endless = gzip.compress(b"submitted_at,seconds,devices\n" + b"1" * (64 << 20))
    for name, content in (("damaged.csv.gz", bytes(whole)), ("endless.csv.gz", endless)):
        (tmp_path / name).write_bytes(content)
        with peak_memory() as peak, pytest.raises(InvalidInput):
            read_trace(tmp_path / name, FORMATS["csv"])
        assert peak() < 16 << 20, name


def test_the_real_traces_are_read_whole() -> None:
    philly = read_trace(shared("philly_82k_jobs.csv.gz"), FORMATS["philly"])
    assert (len(philly.jobs), len({job.tenant for job in philly.jobs})) == (82247, 15)
    assert len(week_of_philly().jobs) == 8562
    helios = read_trace(shared("helios_venus_2vc_sept2020.csv.gz"), FORMATS["helios"])
    assert (len(helios.jobs), len({job.user for job in helios.jobs})) == (1867, 12)
    openb = read_trace(shared("alibaba_openb_2023_pods.csv.gz"), FORMATS["openb"])
    assert sum(openb.left_out.values()) + len(openb.jobs) == 8152
    assert 897 in openb.left_out.values()
