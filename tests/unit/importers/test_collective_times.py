"""Times of collectives in files: nccl-tests of several versions, as mpirun prints them, cut, and CSV."""

import pytest

from linkbound.domain.calibration import CollectivePoint
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.importers.collective_times import CollectiveTimes, read_collective_times

ALL_GATHER = """\
# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_gather_perf
# nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on     node-a device  0 [000f:01:00] NVIDIA GB10
#  Rank  1 Group  0 Pid   1002 on     node-b device  0 [000f:01:00] NVIDIA GB10
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           0             0     float    none      -1     0.21    0.00    0.00       0     0.20    0.00    0.00       0
        1024           128     float    none      -1    31.50    0.03    0.02       0    30.10    0.03    0.02       0
        2048           256     float    none      -1    32.25    0.06    0.03       0    31.00    0.07    0.03       0
        4096           512     float    none      -1  1834.50    0.00    0.00     N/A    33.00    0.12    0.06     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.0333
#
# Collective test concluded: all_gather_perf
"""
POINTS = (
    CollectivePoint(message_bytes=1024, seconds=31.5 * 1e-6),
    CollectivePoint(message_bytes=2048, seconds=32.25 * 1e-6),
    CollectivePoint(message_bytes=4096, seconds=1834.5 * 1e-6),
)


def test_times_out_of_place_and_the_group_are_read() -> None:
    times = read_collective_times(ALL_GATHER)
    assert times.points == POINTS
    assert (times.kind, times.rank_count, times.ranks_per_node) == (CollectiveKind.ALL_GATHER, 2, 1)


def test_what_mpirun_puts_before_each_line_is_taken_off() -> None:
    tagged = "".join(f"[1,0]<stdout>: {line}\n" for line in ALL_GATHER.splitlines())
    assert read_collective_times(tagged) == read_collective_times(ALL_GATHER)


def test_windows_lines_are_lines() -> None:
    assert read_collective_times(ALL_GATHER.replace("\n", "\r\n")).points == POINTS


def test_an_older_version_has_fewer_columns_and_does_not_name_itself() -> None:
    older = """\
# nThread 1 nGpus 8 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#   Rank  0 Pid  10 on  node-a device  0 [0x07] A100
#   Rank  1 Pid  10 on  node-a device  1 [0x0f] A100
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum    15.25    0.00    0.00  0e+00    15.10    0.00    0.00  0e+00
          16             4     float     sum    15.50    0.00    0.00  0e+00    15.20    0.00    0.00  0e+00
"""
    times = read_collective_times(older)
    assert [point.seconds for point in times.points] == pytest.approx([15.25e-6, 15.5e-6])
    assert times.kind is CollectiveKind.UNSPECIFIED
    assert (times.rank_count, times.ranks_per_node) == (2, 2)


def test_rows_alone_are_enough() -> None:
    rows = "\n".join(line for line in ALL_GATHER.splitlines() if not line.startswith("#"))
    times = read_collective_times(rows)
    assert times.points == POINTS
    assert times == CollectiveTimes(points=times.points)


def test_nodes_with_different_rank_counts_have_no_ranks_per_node() -> None:
    third = "#  Rank  2 Group  0 Pid   1003 on     node-b device  1 [000f:02:00] NVIDIA GB10\n#\n# Using"
    times = read_collective_times(ALL_GATHER.replace("#\n# Using", third))
    assert (times.rank_count, times.ranks_per_node) == (3, None)


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("all_reduce_perf", CollectiveKind.ALL_REDUCE),
        ("reduce_scatter_perf", CollectiveKind.REDUCE_SCATTER),
        ("alltoall_perf", CollectiveKind.ALL_TO_ALL),
        ("sendrecv_perf", CollectiveKind.SEND_RECEIVE),
        ("broadcast_perf", CollectiveKind.UNSPECIFIED),
    ],
)
def test_the_program_names_the_collective(program: str, kind: CollectiveKind) -> None:
    assert read_collective_times(ALL_GATHER.replace("all_gather_perf", program)).kind is kind


def test_a_csv_is_sizes_and_times() -> None:
    text = "# pair, 200 Gb/s\nmessage_bytes, seconds\n16384,3.167e-05\n\n67108864, 3e-3\n"
    assert read_collective_times(text).points == (
        CollectivePoint(message_bytes=16384, seconds=3.167e-05),
        CollectivePoint(message_bytes=67108864, seconds=3e-3),
    )


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("", "is neither"),
        ("# nothing but comments\n", "is neither"),
        ('{"json": 1}', "is neither"),
        ("size,time\n1,2\n", "is neither"),
        ("message_bytes,seconds\n", "holds no times"),
        ("message_bytes,seconds\n16384\n", "line 2"),
        ("message_bytes,seconds\n16k,1e-5\n", "line 2"),
        ("message_bytes,seconds\n1024,nan\n", "line 2: seconds"),
        ("message_bytes,seconds\n1024,-1\n", "line 2: seconds"),
        ("message_bytes,seconds\n0,1e-5\n", "line 2: message_bytes"),
        ("\x00\x01\x02", "is neither"),
    ],
)
def test_what_holds_no_times_is_refused(text: str, description: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_collective_times(text, "FILE")
    assert all(violation.field == "FILE" for violation in caught.value.field_violations)
    assert description in caught.value.message


def test_every_bad_line_is_named_up_to_a_limit() -> None:
    text = "message_bytes,seconds\n" + "x,y\n" * 1000
    with pytest.raises(InvalidArgumentError) as caught:
        read_collective_times(text)
    assert len(caught.value.field_violations) == 20
