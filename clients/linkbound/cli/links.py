"""`linkbound links`: links that have a name."""

from __future__ import annotations

from collections.abc import Sequence

import click

from linkbound.cli import text
from linkbound.cli.connect import estimator_client
from linkbound.cli.failures import naming
from linkbound.cli.options import Reply, reply_option
from linkbound.cli.output import print_json, print_text
from linkbound.cli.table import Column, right, table
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.link import RATE_SOURCE_WORDS, ResolvedLink
from linkbound.domain.link_presets import LINK_PRESETS, LinkPreset
from linkbound.domain.words import counted

_COLUMNS = (Column("name"), right("carries"), Column("from"), Column("what it is"))

_ANY_PAIR = 2
"""A rate is resolved with any question about a link; the smallest is a collective of two ranks without a size."""


@click.command()
@reply_option("estimator")
@naming({})
def links(*, reply: Reply) -> None:
    """The links that have a name; each stands wherever a rate does."""
    with estimator_client(reply.target, reply.data) as estimator:
        resolved = [
            estimator.estimate_collective(kind=CollectiveKind.ALL_REDUCE, rank_count=_ANY_PAIR, link=preset.link).link
            for preset in LINK_PRESETS
        ]
    entries = list(zip(LINK_PRESETS, resolved, strict=True))
    if reply.as_json:
        _print_json(entries)
    else:
        print_text(counted(len(entries), "link"), table(_COLUMNS, [_cells(*entry) for entry in entries]))


def _print_json(entries: Sequence[tuple[LinkPreset, ResolvedLink]]) -> None:
    from linkbound.convert.json import message_to_json
    from linkbound.convert.link import resolved_link_to_proto

    print_json(
        {
            "links": [
                {
                    "name": preset.name,
                    "link": message_to_json(resolved_link_to_proto(link)),
                    "description": preset.description,
                    "source": preset.source,
                }
                for preset, link in entries
            ]
        }
    )


def _cells(preset: LinkPreset, link: ResolvedLink) -> list[str]:
    return [
        preset.name,
        text.bits_per_second(link.effective_bits_per_second),
        RATE_SOURCE_WORDS.get(link.rate_source, "unknown"),
        preset.description,
    ]
