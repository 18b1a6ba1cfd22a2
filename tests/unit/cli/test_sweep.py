"""`estimate sweep`: values as they are typed, and the same points as a table, as JSON and as lines."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tests.unit.cli.command import PREFILL, Command

SWEEP = ["estimate", "sweep", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "8k", "--link", "200g"]


def changed(option: str, value: str) -> list[str]:
    if option not in SWEEP:
        return [*SWEEP, option, value]
    position = SWEEP.index(option) + 1
    return [*SWEEP[:position], value, *SWEEP[position + 1 :]]


def test_one_point_is_the_estimate_of_it(linkbound: Command) -> None:
    answer = linkbound(*SWEEP, "--to-link", "109g", "--json").answer
    single = linkbound(*PREFILL, "--to-link", "109g", "--json").answer
    assert answer["total_point_count"] == 1
    assert answer["results"] == [
        {
            "prompt_tokens": 8192,
            "sent_bytes_per_rank": single["sent_bytes_per_rank"],
            "network_seconds": single["network_seconds"]["lower"],
            "extra_ttft_lower_seconds": single["extra_ttft_seconds"]["lower"],
            "extra_ttft_upper_seconds": single["extra_ttft_seconds"]["upper"],
            "feasible": True,
        }
    ]
    assert set(answer["assumptions"]) <= set(single["assumptions"])
    assert answer["estimator_version"] == single["estimator_version"]


def test_every_combination_comes_in_the_order_of_the_axes(linkbound: Command) -> None:
    arguments = ["--requests", "1,4", "--link-rates", "100g..200g+50g"]
    results = linkbound(*changed("--tp", "4,7"), *arguments, "--json").answer["results"]
    assert [
        (r["tensor_parallel_size"], r["request_count"], r["link_bits_per_second"], r["feasible"]) for r in results
    ] == [
        (size, requests, rate * 10**9, size == 4) for size in (4, 7) for requests in (1, 4) for rate in (100, 150, 200)
    ]


def test_lines_hold_the_same_points(linkbound: Command) -> None:
    arguments = [*changed("--prompt-tokens", "1k..40k+1k"), "--tp", "4,7,8", "--to-link", "100g"]
    results = linkbound(*arguments, "--json").answer["results"]
    lines = list(csv.DictReader(io.StringIO(linkbound(*arguments, "--csv").out)))

    def value(text: str) -> Any:
        return text == "true" if text in ("true", "false") else float(text)

    assert [{name: value(text) for name, text in line.items()} for line in lines] == results
    assert len(results) == 120


def test_what_has_no_value_is_empty_in_a_line(linkbound: Command) -> None:
    (line,) = csv.DictReader(io.StringIO(linkbound(*SWEEP, "--csv").out))
    assert line["extra_ttft_lower_seconds"] == line["extra_ttft_upper_seconds"] == ""


def test_a_table_shows_the_first_points_and_counts_the_rest(linkbound: Command) -> None:
    outcome = linkbound(*changed("--prompt-tokens", "1..1000000000+1"), "--to-link", "100g")
    assert outcome.exit_code == 0
    assert outcome.out.startswith("1,000,000,000 points of glm-5.3\n")
    _, points, more, assumed = outcome.out.split("\n\n")
    assert more == "999,999,960 more points; --csv writes all of them"
    assert len(points.splitlines()) == 2 + 40
    assert assumed.startswith("assumed  ")
    assert "\n".join(linkbound(*SWEEP, "--json").answer["assumptions"][:1]) in assumed


def test_a_table_writes_rates_and_changes_as_other_answers_do(linkbound: Command) -> None:
    out = linkbound(*SWEEP[:-2], "--link-rates", "100g,200g", "--to-link-rates", "100g,400g").out
    header, _, *rows = out.split("\n\n")[1].splitlines()
    assert header.split("  ")[0] == "prompt tokens"
    assert [" ".join(row.split()) for row in rows] == [
        "8,192 100 Gb/s 100 Gb/s 27.66 GB 2.21 s no change yes",
        "8,192 100 Gb/s 400 Gb/s 27.66 GB 2.21 s up to 1.66 s less yes",
        "8,192 200 Gb/s 100 Gb/s 27.66 GB 1.11 s at most +1.11 s yes",
        "8,192 200 Gb/s 400 Gb/s 27.66 GB 1.11 s up to 0.55 s less yes",
    ]


@pytest.mark.parametrize("start_index", [1, 7, 119])
def test_lines_that_broke_off_go_on_where_they_were(start_index: int, linkbound: Command) -> None:
    arguments = [*changed("--prompt-tokens", "1k..40k+1k"), "--tp", "4,7,8", "--csv"]
    names, *lines = linkbound(*arguments).out.splitlines()
    assert len(lines) == 120
    assert linkbound(*arguments, "--start-index", str(start_index)).out.splitlines() == [names, *lines[start_index:]]


@pytest.mark.parametrize(("start_index", "allowed"), [("120", "0 to 119"), ("-1", "0 to 999999999999")])
def test_a_first_point_that_is_not_there_is_refused(start_index: str, allowed: str, linkbound: Command) -> None:
    outcome = linkbound(
        *changed("--prompt-tokens", "1k..40k+1k"), "--tp", "4,7,8", "--csv", "--start-index", start_index
    )
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err == f"linkbound: --start-index: {start_index} is not a whole number from {allowed}\n"


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_nothing_is_printed_of_a_sweep_that_cannot_be(form: str, linkbound: Command) -> None:
    outcome = linkbound(*changed("--model", "glm-5.4"), form)
    assert (outcome.exit_code, outcome.out) == (2, "")


@pytest.mark.parametrize(
    ("option", "value", "lines"),
    [
        ("--prompt-tokens", "0,8k", ["--prompt-tokens: 0 is not a whole number from 1 to 1000000000"]),
        ("--requests", "1,0", ["--requests: 0 is not a whole number from 1 to"]),
        ("--prompt-tokens", "1..2000000000+1", ["--prompt-tokens: 2000000000 is not a whole number from 1 to"]),
        ("--tp", "8,9999", ["--tp: 9999 is not a whole number from 1 to 4096"]),
    ],
)
def test_what_is_wrong_with_an_axis_is_told_by_its_option(
    option: str, value: str, lines: list[str], linkbound: Command
) -> None:
    outcome = linkbound(*changed(option, value))
    told = outcome.err.removeprefix("linkbound: ").splitlines()
    assert outcome.exit_code == 2
    assert len(told) == len(lines)
    assert all(line.startswith(start) for line, start in zip(told, lines, strict=True))


def test_json_has_an_end(linkbound: Command) -> None:
    outcome = linkbound(*changed("--prompt-tokens", "1..100001+1"), "--json")
    assert outcome.exit_code == 2
    assert "100001 points are above 100000; --csv writes any number" in outcome.err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--prompt-tokens", "1k..8k", "'1k..8k' has no step; evenly spaced values are FIRST..LAST+STEP"),
        ("--prompt-tokens", "8k..1k+1k", "does not rise in steps of at least 1 from its first value to its last"),
        ("--prompt-tokens", "1..8+0", "does not rise in steps of at least 1"),
        ("--prompt-tokens", "1...8+1", "'.8' is not a whole number of tokens"),
        ("--prompt-tokens", "..", "has no step"),
        ("--prompt-tokens", "1,,2", "'' is not a whole number of tokens"),
        ("--prompt-tokens", "0", "0 is not a whole number from 1 to"),
        ("--tp", "2,4,many", "'many' is not a whole number"),
        ("--tp", "7", "7 ranks do not divide 64 attention heads"),
        ("--link-rates", "100", "is not a rate such as 200g"),
        ("--model", "glm-5.4", "did you mean glm-5.3"),
    ],
)
def test_a_value_that_cannot_be_is_named(option: str, value: str, message: str, linkbound: Command) -> None:
    outcome = linkbound(*changed(option, value))
    assert outcome.exit_code == 2
    assert outcome.err.startswith(f"linkbound: {option}: ")
    assert message in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize("rates", ["100g,109g", "100g", "100g..200g+50g"])
def test_rates_stand_in_place_of_a_link_that_is_not_given(rates: str, linkbound: Command) -> None:
    of_link, of_to_link = ("--link-rates", rates), ("--to-link-rates", rates)
    given = linkbound(*SWEEP, *of_link, "--to-link", "400g", *of_to_link, "--json").answer
    assert given == linkbound(*SWEEP[:-2], *of_link, *of_to_link, "--json").answer
    assert any("extra_ttft_upper_seconds" in point for point in given["results"])


def test_one_link_or_its_rates_are_needed(linkbound: Command) -> None:
    outcome = linkbound(*SWEEP[:-2], "--to-link-rates", "100g")
    assert outcome.exit_code == 2
    assert "--link: is missing, and so is --link-rates" in outcome.err
