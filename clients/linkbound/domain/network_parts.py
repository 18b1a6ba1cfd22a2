"""Switches, cables and network adapters as the catalogue knows them."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.names import CATALOG_ID
from linkbound.domain.rules import CrossChecked, instance, optional, real, sequence, text, whole

_LARGEST_PORT_COUNT = 1024
_LARGEST_LINKS_OF_PORT = 16
_LARGEST_PRICE_USD = 1e7
_LARGEST_PORT_RATE_BITS_PER_SECOND = 10**13

PORT_RATE = whole(1, _LARGEST_PORT_RATE_BITS_PER_SECOND)
_CONNECTOR = text(32, minimum_length=1)
_DISPLAY_NAME = text(128, minimum_length=1)
_PRICE_USD = optional(real(_LARGEST_PRICE_USD))
_SENTENCE = text(1024, minimum_length=1)
_SOURCES = sequence(1, 32, _SENTENCE)


@frozen(kw_only=True)
class Pitfall:
    """Something that went wrong for others. `rate_bits_per_second` is that of the links it is about; None: of any."""

    text: str = field(metadata=_SENTENCE)
    rate_bits_per_second: int | None = field(default=None, metadata=optional(PORT_RATE))

    def concerns(self, rate_bits_per_second: int) -> bool:
        """Whether it is about links of this rate."""
        return self.rate_bits_per_second in (None, rate_bits_per_second)


_PITFALLS = sequence(0, 32, instance(Pitfall))


@frozen(kw_only=True)
class PortMode:
    """A way to run one port: as `link_count` links of one rate each."""

    link_count: int = field(metadata=whole(1, _LARGEST_LINKS_OF_PORT))
    rate_bits_per_second: int = field(metadata=PORT_RATE)


@frozen(kw_only=True)
class PortGroup:
    """Ports of a switch that are alike."""

    connector: str = field(metadata=_CONNECTOR)
    port_count: int = field(metadata=whole(1, _LARGEST_PORT_COUNT))
    modes: tuple[PortMode, ...] = field(metadata=sequence(1, 16, instance(PortMode)))


@frozen(kw_only=True)
class Switch:
    """A switch. Rates are of one direction; None: no source states it."""

    switch_id: str = field(metadata=CATALOG_ID)
    display_name: str = field(metadata=_DISPLAY_NAME)
    port_groups: tuple[PortGroup, ...] = field(metadata=sequence(1, 8, instance(PortGroup)))
    switching_bits_per_second: int | None = field(default=None, metadata=optional(whole(1, 10**16)))
    list_price_usd: float | None = field(default=None, metadata=_PRICE_USD)
    pitfalls: tuple[Pitfall, ...] = field(default=(), metadata=_PITFALLS)
    sources: tuple[str, ...] = field(metadata=_SOURCES)


@frozen(kw_only=True)
class Cable(CrossChecked):
    """A cable from one port of a switch to `link_count` others. An empty `part_number` is a class of cables.

    `failed_nics` are ids of adapters that did not link up with it.
    """

    cable_id: str = field(metadata=CATALOG_ID)
    description: str = field(metadata=text(256, minimum_length=1))
    part_number: str = field(default="", metadata=text(128))
    switch_connector: str = field(metadata=_CONNECTOR)
    far_connector: str = field(metadata=_CONNECTOR)
    link_count: int = field(metadata=whole(1, _LARGEST_LINKS_OF_PORT))
    rate_bits_per_second: int = field(metadata=PORT_RATE)
    list_price_usd: float | None = field(default=None, metadata=_PRICE_USD)
    failed_nics: tuple[str, ...] = field(default=(), metadata=sequence(0, 32, CATALOG_ID))
    pitfalls: tuple[Pitfall, ...] = field(default=(), metadata=_PITFALLS)
    sources: tuple[str, ...] = field(metadata=_SOURCES)

    def cross_violations(self) -> Iterable[Violation]:
        """A class of cables has no price of its own."""
        if not self.part_number and self.list_price_usd is not None:
            yield Violation("list_price_usd", "is given for a class of cables; a price needs a part_number")


@frozen(kw_only=True)
class NicPortGroup:
    """Ports of an adapter that are alike. No connectors: any; no rates: any."""

    connectors: tuple[str, ...] = field(default=(), metadata=sequence(0, 8, _CONNECTOR))
    port_count: int = field(metadata=whole(1, 64))
    rates_bits_per_second: tuple[int, ...] = field(default=(), metadata=sequence(0, 16, PORT_RATE))

    def takes(self, connector: str, rate_bits_per_second: int) -> bool:
        """Whether a cable with this end fits, and the port runs at this rate."""
        fits = not self.connectors or connector in self.connectors
        return fits and (not self.rates_bits_per_second or rate_bits_per_second in self.rates_bits_per_second)


@frozen(kw_only=True)
class Nic:
    """The network adapters of one node. `total_bits_per_second` is what its host carries over all ports at once."""

    nic_id: str = field(metadata=CATALOG_ID)
    display_name: str = field(metadata=_DISPLAY_NAME)
    port_groups: tuple[NicPortGroup, ...] = field(metadata=sequence(1, 8, instance(NicPortGroup)))
    total_bits_per_second: int | None = field(default=None, metadata=optional(PORT_RATE))
    pitfalls: tuple[Pitfall, ...] = field(default=(), metadata=_PITFALLS)
    sources: tuple[str, ...] = field(metadata=_SOURCES)


@frozen(kw_only=True)
class NetworkParts:
    """What a cluster can be built of: the switches in question, every cable, and the adapter of a node."""

    switches: tuple[Switch, ...]
    cables: tuple[Cable, ...]
    nic: Nic
