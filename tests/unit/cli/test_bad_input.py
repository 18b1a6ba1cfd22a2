"""Bad input ends with exit code 2 and one message: the option as it was typed, the value, and what is allowed."""

import pytest

from tests.unit.cli.command import DECODE, MEMORY, PREFILL, TP, TRAINING, Command


def changed(command: list[str], option: str, value: str) -> list[str]:
    """`command` with another value of `option`, added where it was not given."""
    if option not in command:
        return [*command, option, value]
    position = command.index(option) + 1
    return [*command[:position], value, *command[position + 1 :]]


HUGE = "1000000000000000000"

BAD = [
    # zero
    (PREFILL, "--tp", "0", "0 is not a whole number from 1 to 4096"),
    (PREFILL, "--prompt-tokens", "0", "0 is not a whole number from 1 to 1000000000"),
    (PREFILL, "--requests", "0", "0 is not a whole number from 1 to 100000"),
    (PREFILL, "--link", "0g", "'0g' is not a rate above 0"),
    (PREFILL, "--baseline-ttft", "0", "0.0 is not a number above 0"),
    (PREFILL, "--max-num-batched-tokens", "0", "0 is not a whole number from 1 to 1000000000"),
    (PREFILL, "--pcie-functions", "0", "0 is not a whole number from 1 to 16"),
    (DECODE, "--requests", "0", "0 is not a whole number from 1 to 100000"),
    (DECODE, "--acceptance-length", "0", "0.0 is not a number above 0"),
    (TP, "--baseline-tp", "0", "0 is not a whole number from 1 to 4096"),
    (TP, "--tp-sizes", "2,0", "0 is not a whole number from 1 to 4096"),
    (MEMORY, "--context", "0", "0 is not a whole number from 1 to 1000000000"),
    (MEMORY, "--utilization", "1.5", "1.5 is not a number above 0 and at most 1"),
    (MEMORY, "--tp", "7", "7 ranks do not divide 64 attention heads"),
    (MEMORY, "--hardware", "dgx-sparc", "did you mean dgx-spark"),
    (MEMORY, "--weight-bits", "65", "65.0 is not a number above 0 and at most 64"),
    (TRAINING, "--lora-parameters", "5", "--lora-parameters: needs a model"),
    (TRAINING, "--value-bytes", "3", "3 is not one of 1, 2, 4"),
    (TRAINING, "--nodes", "0", "0 is not a whole number from 1 to 65536"),
    (TRAINING, "--compute-step-seconds", "0", "0.0 is not a number above 0"),
    # negative
    (PREFILL, "--tp", "-8", "-8 is not a whole number from 1 to 4096"),
    (PREFILL, "--prompt-tokens", "-1", "'-1' is not a whole number of tokens"),
    (PREFILL, "--link", "-200g", "'-200g' is not a rate"),
    (PREFILL, "--baseline-ttft", "-6.36", "'-6.36' is not a duration"),
    (DECODE, "--draft-tokens", "-1", "-1 is not a whole number from 0 to 64"),
    (DECODE, "--acceptance-length", "-1", "-1.0 is not a number above 0"),
    (TRAINING, "--gradient-bytes", "-1", "'-1' is not a size in bytes such as"),
    # not a number
    (PREFILL, "--baseline-ttft", "NaN", "'NaN' is not a duration"),
    (PREFILL, "--baseline-ttft", "inf", "'inf' is not a duration"),
    (PREFILL, "--tp", "nan", "'nan' is not a whole number"),
    (PREFILL, "--tp", "8.0", "'8.0' is not a whole number"),
    (PREFILL, "--tp", "", "'' is not a whole number"),
    (PREFILL, "--prompt-tokens", "8k,", "'' is not a whole number of tokens"),
    (PREFILL, "--prompt-tokens", "8M", "'8M' is not a whole number of tokens"),
    (PREFILL, "--link", "fast", "'fast' is not a rate such as 200g, 109Gb/s or 22.14GB/s"),
    (PREFILL, "--link", "nang", "'nang' is not a rate"),
    (DECODE, "--acceptance-length", "nan", "'nan' is not a number"),
    (TRAINING, "--compute-step-seconds", "nan", "'nan' is not a duration"),
    # huge
    (PREFILL, "--tp", HUGE, f"{HUGE} is not a whole number from 1 to 4096"),
    (PREFILL, "--prompt-tokens", HUGE, f"{HUGE} is not a whole number from 1 to 1000000000"),
    (PREFILL, "--requests", HUGE, f"{HUGE} is not a whole number from 1 to 100000"),
    (PREFILL, "--link", f"{HUGE}g", f"'{HUGE}g' is not a rate above 0 and at most 1000t (10^15 bit/s)"),
    (PREFILL, "--baseline-ttft", HUGE, "1e+18 is not a number above 0 and at most 1e+09"),
    (PREFILL, "--measured", "2000000000g", "is not a rate above 0 and at most 1000t"),
    (DECODE, "--draft-tokens", HUGE, f"{HUGE} is not a whole number from 0 to 64"),
    (DECODE, "--acceptance-length", HUGE, "1e+18 is not a number above 0 and at most 65"),
    (TP, "--tp-sizes", f"8,{HUGE}", f"{HUGE} is not a whole number from 1 to 4096"),
    (TRAINING, "--gradient-bytes", HUGE, f"{HUGE} is not a whole number from 1 to"),
    # other scripts
    (PREFILL, "--tp", "٨", "'\\u0668' is not a whole number"),
    (PREFILL, "--prompt-tokens", "８k", "'\\uff18k' is not a whole number of tokens"),
    (PREFILL, "--link", "２００g", "is not a rate"),
    (PREFILL, "--model", "モデル", "a name of 1 to 64 printable ASCII characters"),
    (DECODE, "--hardware", "spark\u200b", "is not empty or a name of 1 to 64 printable ASCII characters"),
    # values that do not go together
    (PREFILL, "--tp", "7", "7 ranks do not divide 64 attention heads"),
    (PREFILL, "--roce-mtu", "1500", "1500 is not one of 256, 512, 1024, 2048, 4096"),
    (PREFILL, "--to-roce-mtu", "1024", "needs --to-link"),
    (PREFILL, "--baseline-ttft", "1", "1.0 s is below"),
    (DECODE, "--acceptance-length", "2", "2.0 is not from 1 to 1, one plus the draft tokens"),
    (TP, "--tp-sizes", "2,4,2", "2: asked more than once"),
    (PREFILL, "--measured", "300g", "300 Gb/s is above the line rate, 200 Gb/s: no payload is; give the line rate of"),
    (DECODE, "--measured", "200.1g", "200.1 Gb/s is above the line rate, 200 Gb/s"),
    ([*PREFILL[:-2], "--link", "spark-1f"], "--measured", "150g", "150 Gb/s is above the raw rate of 1 PCIe function"),
    # names
    (PREFILL, "--model", "glm53", "did you mean glm-5.3"),
    (PREFILL, "--model", "GLM-5.3", "model 'GLM-5.3' does not exist; did you mean glm-5.3"),
    (PREFILL, "--model", "models/GLM 5.3", "model 'GLM 5.3' does not exist; did you mean glm-5.3"),
    (PREFILL, "--model", "x" * 65, "a name of 1 to 64 printable ASCII characters"),
    (DECODE, "--hardware", "DGX Spark", "hardware 'DGX Spark' does not exist; did you mean dgx-spark"),
    (TP, "--model", "GLM-5.3", "did you mean glm-5.3"),
    (DECODE, "--hardware", "dgx-sparc", "did you mean dgx-spark"),
    (PREFILL, "--target", "nonsense", "'nonsense' is not host:port"),
    (PREFILL, "--target", "localhost:99999", "'localhost:99999' is not host:port"),
]


@pytest.mark.parametrize(("command", "option", "value", "message"), BAD)
def test_one_bad_value(command: list[str], option: str, value: str, message: str, linkbound: Command) -> None:
    outcome = linkbound(*changed(command, option, value))
    assert outcome.exit_code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"linkbound: {option}: ")
    assert message in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("option", ["--tp", "--prompt-tokens", "--link", "--model"])
def test_a_missing_option_is_named(option: str, linkbound: Command) -> None:
    position = PREFILL.index(option)
    outcome = linkbound(*PREFILL[:position], *PREFILL[position + 2 :])
    assert outcome.exit_code == 2
    assert outcome.err == f"linkbound: {option}: is missing\nhelp: linkbound estimate prefill --help\n"


def test_every_violation_comes_at_once(linkbound: Command) -> None:
    command = changed(changed(changed(PREFILL, "--tp", "0"), "--requests", "0"), "--roce-mtu", "1")
    outcome = linkbound(*command)
    assert outcome.exit_code == 2
    assert outcome.err.splitlines() == [
        "linkbound: --tp: 0 is not a whole number from 1 to 4096",
        "--requests: 0 is not a whole number from 1 to 100000",
        "--roce-mtu: 1 is not one of 256, 512, 1024, 2048, 4096",
    ]


def test_errors_stay_on_stderr_with_json(linkbound: Command) -> None:
    outcome = linkbound(*changed(PREFILL, "--tp", "7"), "--json")
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith("linkbound: --tp: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimat"], "'estimat' is not a command; did you mean estimate?"),
        (["estimate", "prefil"], "'prefil' is not a command; did you mean prefill?"),
        (["zzz"], "'zzz' is not a command; there are estimate, models,"),
        (["models", "show"], "MODEL: is missing"),
        (["models", "show", "glm53"], "MODEL: model 'glm53' does not exist; did you mean glm-5.3"),
        (["models", "show", "GLM-5.3"], "MODEL: model 'GLM-5.3' does not exist; did you mean glm-5.3"),
        (["models", "show", "mod\tel"], "MODEL: 'mod\\tel' is not a name of 1 to 64 printable ASCII characters"),
        (["runs", "show", "Not An Id"], "RUN: 'Not An Id' is not an id"),
        (["compare"], "RUN: is missing"),
        ([*PREFILL, "--modle", "x"], "--modle"),
        (["health", "--target", "127.0.0.1:1", "--timeout", "0"], "--timeout: 0.0 is not a number of seconds above 0"),
        (["serve", "--estimator-port", "-1"], "--estimator-port: '-1' is not a whole number"),
        (["serve", "--ingest-port", "65536"], "--ingest-port: 65536 is not a whole number from 0 to 65535"),
        (["serve", "--host", "0.0.0.0"], "--host: '0.0.0.0' can be reached from other machines"),
        (["serve", "--only", "both"], "--only"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, linkbound: Command) -> None:
    outcome = linkbound(*arguments)
    assert outcome.exit_code == 2
    assert outcome.out == ""
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_a_token_file_that_is_not_there(
    linkbound: Command, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("LINKBOUND_TOKEN_FILE", str(tmp_path_factory.mktemp("none") / "token"))
    outcome = linkbound(*PREFILL)
    assert outcome.exit_code == 2
    assert outcome.err.startswith("linkbound: LINKBOUND_TOKEN_FILE: cannot read ")


def test_a_token_that_no_header_can_carry_is_not_repeated(linkbound: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKBOUND_TOKEN", "geheim-ключ")
    outcome = linkbound(*PREFILL)
    assert outcome.exit_code == 2
    assert outcome.err == "linkbound: LINKBOUND_TOKEN or LINKBOUND_TOKEN_FILE: is not visible ASCII text\n"
