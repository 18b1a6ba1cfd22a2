"""What a check of the files of sealed runs found."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class FileFault:
    """A file that is not what was sealed, and what is wrong with it."""

    path: str
    description: str


@frozen(kw_only=True)
class RunCheck:
    """The files of one sealed run. `size_bytes` is that of the files which are whole."""

    run: str
    file_count: int
    size_bytes: int
    faults: tuple[FileFault, ...]


@frozen(kw_only=True)
class StoreCheck:
    """The sealed runs below `path`. `not_looked_at` says what could not be, and why; empty: all was."""

    path: str
    runs: tuple[RunCheck, ...]
    not_looked_at: str = ""

    @property
    def fault_count(self) -> int:
        """Faults of all runs."""
        return sum(len(run.faults) for run in self.runs)
