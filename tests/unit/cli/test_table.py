from linkbound.cli.table import Column, pairs, right, table


def test_columns_are_as_wide_as_their_widest_cell_and_lines_end_without_spaces() -> None:
    shown = table([Column("test"), right("s"), Column("inside")], [["P1: 1K", "0.96", "yes"], ["P2", "6.36", ""]])
    assert shown.splitlines() == [
        "test       s  inside",
        "------  ----  ------",
        "P1: 1K  0.96  yes",
        "P2      6.36",
    ]


def test_a_table_without_rows_is_its_titles() -> None:
    assert table([Column("test"), right("seconds")], []).splitlines() == ["test  seconds", "----  -------"]


def test_pairs() -> None:
    assert pairs([("link", "200 Gb/s"), ("new link", "109 Gb/s")]) == "link      200 Gb/s\nnew link  109 Gb/s"
    assert pairs([]) == ""
