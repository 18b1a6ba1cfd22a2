"""docs/schema.md says what the migrations say."""

from pathlib import Path

from scripts.gen_schema_doc import document, main

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_is_up_to_date() -> None:
    assert (ROOT / "docs" / "schema.md").read_text(encoding="utf-8") == document()
    assert main(["check"]) == 0


def test_every_table_has_its_section() -> None:
    text = document()
    for table in ("runs", "predicted_values", "requests", "counter_samples", "ledger"):
        assert f"\n## {table}\n" in text
    assert "| `ttft_ns` | BIGINT | Send to first generated token received. NULL: no token came. |" in text
    assert "Primary key: `run_id`, `writer_id`, `sequence_number`." in text
