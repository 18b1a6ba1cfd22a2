"""`linkbound store`: the files of a store on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from linkbound.cli import text
from linkbound.cli.failures import OTHER, naming
from linkbound.cli.options import data_option, json_option
from linkbound.cli.output import print_json, print_text
from linkbound.cli.table import Column, right, table
from linkbound.domain.words import counted

if TYPE_CHECKING:
    from linkbound.domain.store_check import RunCheck, StoreCheck
    from linkbound.domain.store_recovery import LogRecovery

_COLUMNS = (Column("run"), right("files"), right("size"), Column("state"))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def store() -> None:
    """The files of a store on this machine."""


@store.command("verify")
@data_option
@json_option
@naming({})
def verify(*, data: str | None, as_json: bool) -> int:
    """Reads every file of the sealed runs, and exits with 1 where one is missing or not what was sealed.

    The store may be in use meanwhile.
    """
    import attrs

    from linkbound.client.local.store_check import verify_local_store

    found = verify_local_store(data)
    if as_json:
        print_json(attrs.asdict(found))
    else:
        print_text(_headline(found), table(_COLUMNS, [_cells(run) for run in found.runs]), *_remarks(found))
    return OTHER if found.fault_count else 0


@store.command("recover")
@data_option
@json_option
@naming({})
def recover(*, data: str | None, as_json: bool) -> None:
    """Makes a store whose log is damaged one that opens: what stands before the damage is kept.

    The log as it was stays beside it. The service must not run. A store that is whole loses nothing.
    """
    import attrs

    from linkbound.client.local.store_check import recover_local_store

    found = recover_local_store(data)
    if as_json:
        print_json(attrs.asdict(found))
    else:
        print_text(*_recovered(found))


def _recovered(found: LogRecovery) -> list[str]:
    kept, whole = text.size_bytes(found.kept_size_bytes), text.size_bytes(found.log_size_bytes)
    if not found.set_aside_path:
        return [f"{found.path}: nothing is damaged"]
    kept_line = f"{found.path}: kept {kept} of a log of {whole}; as it was, it is {found.set_aside_path}"
    rest = (
        "Writers that run or have a spool send again what is missing, once the service runs. What others wrote in the"
        " moments before the damage may be missing: look at what they stored, and write it again."
    )
    return [kept_line, rest]


def _headline(found: StoreCheck) -> str:
    state = counted(found.fault_count, "fault") if found.fault_count else "whole"
    return f"{found.path}: {counted(len(found.runs), 'sealed run')}, {state}"


def _cells(run: RunCheck) -> list[str]:
    state = counted(len(run.faults), "fault") if run.faults else "whole"
    return [run.run, f"{run.file_count:,}", text.size_bytes(run.size_bytes), state]


def _remarks(found: StoreCheck) -> list[str]:
    faults = "\n".join(f"{fault.path} {fault.description}" for run in found.runs for fault in run.faults)
    return [faults, f"not looked at: {found.not_looked_at}" if found.not_looked_at else ""]
