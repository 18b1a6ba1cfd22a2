"""`estimate collective` and `calibrations`."""

from pathlib import Path

import pytest

from tests.unit.cli.command import Command

COLLECTIVE = ["estimate", "collective", "--ranks", "8", "--message-bytes", "16k", "--link", "200g"]
CALIBRATED = [*COLLECTIVE, "--calibration", "dgx-spark-8-switch"]
NCCL_TESTS = """\
# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid   1001 on     node-a device  0 [000f:01:00] NVIDIA GB10
#  Rank  1 Group  0 Pid   1002 on     node-b device  0 [000f:01:00] NVIDIA GB10
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
       16384          4096     float     sum      -1    31.67    0.52    0.52       0    30.75    0.53    0.53       0
    67108864      16777216     float     sum      -1  3000.00   22.37   22.37       0  2990.00   22.44   22.44       0
"""


@pytest.fixture
def nccl_tests(tmp_path: Path) -> str:
    path = tmp_path / "nccl.txt"
    path.write_text(NCCL_TESTS, "utf-8")
    return str(path)


def test_a_collective_without_a_calibration(linkbound: Command) -> None:
    outcome = linkbound(*COLLECTIVE)
    assert outcome.exit_code == 0
    assert outcome.out.splitlines()[0] == "at least 1.15 us: all-reduce of 16,384 bytes among 8 ranks"
    (taken,) = [line for line in outcome.out.splitlines() if line.endswith("takes it")]
    assert taken.startswith("double-binary-tree  LL ")


def test_a_calibration_is_named_and_its_interval_shown(linkbound: Command) -> None:
    lines = linkbound(*CALIBRATED).out.splitlines()
    assert lines[0].startswith("about 133.82 us (")
    assert "calibration             dgx-spark-8-switch" in lines


def test_the_answer_as_json(linkbound: Command) -> None:
    answer = linkbound(*CALIBRATED, "--json").answer
    assert answer["sent_bytes_per_rank"] == 28_672
    assert answer["seconds"]["lower"] < answer["seconds"]["expected"] < answer["seconds"]["upper"]
    assert answer["seconds"]["expected_basis"] == "BASIS_CALIBRATED"
    assert answer["calibration"]["name"] == "calibrations/dgx-spark-8-switch"
    assert sum(choice["chosen"] for choice in answer["choices"]) == 1


def test_several_ranks_in_a_node(linkbound: Command) -> None:
    answer = linkbound(*COLLECTIVE, "--ranks-per-node", "4", "--inner-link", "450GB/s", "--json").answer
    assert answer["inner_link"]["effective_bits_per_second"] == 3_600_000_000_000
    assert answer["inner_sent_bytes_per_rank"] == 28_672


def test_rates_alone(linkbound: Command) -> None:
    outcome = linkbound("estimate", "collective", "--ranks", "8", "--link", "200g")
    assert outcome.out.splitlines()[0] == "bus bandwidth at most 25 GB/s: all-reduce among 8 ranks"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*COLLECTIVE, "--ranks-per-node", "4"], "--inner-link: is missing, with 4 ranks per node"),
        ([*COLLECTIVE, "--ranks-per-node", "3"], "--ranks-per-node: 3 does not divide 8 ranks"),
        ([*COLLECTIVE[:-4], "--message-bytes", "16q", "--link", "200g"], "--message-bytes: '16q' is not a size"),
        (
            [*COLLECTIVE, "--kind", "all-gather", "--algorithm", "double-binary-tree"],
            "--algorithm: double binary trees run all-reduces, not ALL_GATHER",
        ),
        (
            [*COLLECTIVE, "--calibration", "dgx-spark-pear"],
            "--calibration: calibration 'dgx-spark-pear' does not exist",
        ),
        (["calibrations", "show", "dgx-spark-pear"], "CALIBRATION: calibration 'dgx-spark-pear' does not exist"),
    ],
)
def test_bad_input_names_the_option(arguments: list[str], message: str, linkbound: Command) -> None:
    outcome = linkbound(*arguments)
    assert outcome.exit_code == 2
    assert message in outcome.err
    assert outcome.out == ""


def test_the_list_of_calibrations(linkbound: Command) -> None:
    lines = linkbound("calibrations", "list").out.splitlines()
    assert any(line.startswith("dgx-spark-pair ") and "65.97 us" in line and "in-framework" in line for line in lines)
    names = [entry["name"] for entry in linkbound("calibrations", "list", "--json").answer["calibrations"]]
    assert "calibrations/dgx-spark-pair-nccl-tests" in names


def test_a_calibration_is_shown_with_its_residuals_and_sources(linkbound: Command) -> None:
    out = linkbound("calibrations", "show", "calibrations/dgx-spark-pair").out
    assert out.splitlines()[0] == (
        "65.97 us for small and 13.29 GB/s bus bandwidth for large ones: all-reduce among 2 ranks"
    )
    assert "10,240" in out
    assert "source" in out


def test_a_file_of_nccl_tests_is_fitted_and_stored(
    nccl_tests: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linkbound: Command
) -> None:
    monkeypatch.setenv("LINKBOUND_DATA", str(tmp_path / "data"))
    answer = linkbound("calibrations", "fit", nccl_tests, "--name", "pair", "--source", "a test", "--json").answer
    assert answer["name"] == "calibrations/pair"
    assert answer["table"]["kind"] == "COLLECTIVE_KIND_ALL_REDUCE"
    assert answer["table"]["rank_count"] == 2
    assert answer["fixed_seconds"] == pytest.approx(31.67e-6)
    assert answer["sources"] == ["a test"]
    assert linkbound("calibrations", "show", "pair", "--json").answer == answer
    other = linkbound("calibrations", "fit", nccl_tests, "--name", "pair")
    assert other.exit_code == 2
    assert "exists with other content" in other.err


def test_a_csv_needs_its_group(tmp_path: Path, linkbound: Command) -> None:
    path = tmp_path / "times.csv"
    path.write_text("message_bytes,seconds\n16384,1e-4\n67108864,5e-3\n", "utf-8")
    assert "--kind: is missing" in linkbound("calibrations", "fit", str(path)).err
    assert "--ranks: is missing" in linkbound("calibrations", "fit", str(path), "--kind", "all-reduce").err
    outcome = linkbound(
        *("calibrations", "fit", str(path), "--kind", "all-reduce", "--ranks", "8", "--ranks-per-node", "3")
    )
    assert (outcome.exit_code, outcome.err) == (2, "linkbound: --ranks-per-node: 3 does not divide 8 ranks\n")
    outcome = linkbound(*("calibrations", "fit", str(path), "--kind", "all-reduce", "--ranks", "8"))
    assert outcome.exit_code == 0
    assert "not stored" in outcome.out


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"PK\x03\x04", b'{"a": 1}'])
def test_a_file_of_something_else_is_refused(content: bytes, tmp_path: Path, linkbound: Command) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    outcome = linkbound("calibrations", "fit", str(path), "--kind", "all-reduce", "--ranks", "2")
    assert outcome.exit_code == 2
    assert "FILE: is neither the output of nccl-tests nor a CSV" in outcome.err
