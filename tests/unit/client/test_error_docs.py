"""What the client raises by itself against `docs/errors.md`."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
CLIENT_ROWS = re.compile(r"^\| [^|]+ \| `([A-Z_]+)` \| `(\w+)` \|$", re.MULTILINE)


def raised() -> set[tuple[str, str]]:
    """Every reason that is given as a word, with the class it is given to."""
    return {
        (keyword.value.value, call.func.id)
        for path in (ROOT / "clients/linkbound/client").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        for keyword in call.keywords
        if keyword.arg == "reason" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
    }


def test_every_reason_of_the_client_is_documented() -> None:
    assert set(CLIENT_ROWS.findall((ROOT / "docs/errors.md").read_text("utf-8"))) == raised()
