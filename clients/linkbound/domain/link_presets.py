"""Links that people have, by name: `spark-1f`, `100gbe-tcp`, `nvlink4`. A name stands wherever a rate may stand.

An Ethernet port has an MTU of 1500 until someone changes it, so these presets have it too: a RoCE path MTU of 1024, or
1500 for TCP. What is known to be different is refined: `spark-2f` with a RoCE MTU of 4096.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.link import BITS_PER_BYTE, Link, LinkTransport
from linkbound.domain.quantities import parse_rate_bits_per_second
from linkbound.domain.rules import instance, text

GIGABIT = 10**9
GIGABYTES_IN_BITS = BITS_PER_BYTE * 10**9

_STANDARD_ROCE_MTU_BYTES = 1024
_STANDARD_ETHERNET_MTU_BYTES = 1500
_INFINIBAND_MTU_BYTES = 4096


@frozen(kw_only=True)
class LinkPreset:
    """A link with a name, what it is in words, and where the facts come from."""

    name: str = field(metadata=text(64, minimum_length=1))
    link: Link = field(metadata=instance(Link))
    description: str = field(metadata=text(256, minimum_length=1))
    source: str = field(metadata=text(256, minimum_length=1))


_ETHERNET_GIGABITS = (1, 10, 25, 100, 200, 400)
_IEEE = "IEEE 802.3, line rate; headers: RoCE v2 annex of the InfiniBand architecture specification"
_IEEE_TCP = "IEEE 802.3, line rate; headers: RFC 791, RFC 9293, RFC 7323"


def _ethernet() -> Iterator[LinkPreset]:
    for gigabits in _ETHERNET_GIGABITS:
        yield LinkPreset(
            name=f"{gigabits}gbe",
            link=Link(
                line_rate_bits_per_second=gigabits * GIGABIT,
                roce_mtu_bytes=_STANDARD_ROCE_MTU_BYTES,
                transport=LinkTransport.ROCE,
            ),
            description=f"{gigabits} Gb/s Ethernet, RoCE, Ethernet MTU 1500",
            source=_IEEE,
        )
        yield LinkPreset(
            name=f"{gigabits}gbe-tcp",
            link=Link(
                line_rate_bits_per_second=gigabits * GIGABIT,
                ethernet_mtu_bytes=_STANDARD_ETHERNET_MTU_BYTES,
                transport=LinkTransport.TCP,
            ),
            description=f"{gigabits} Gb/s Ethernet, TCP sockets, MTU 1500; above 10 Gb/s the processor may be slower",
            source=_IEEE_TCP,
        )


_SPARK = (
    LinkPreset(
        name="spark-1f",
        link=Link(
            line_rate_bits_per_second=200 * GIGABIT,
            roce_mtu_bytes=_STANDARD_ROCE_MTU_BYTES,
            pcie_function_count=1,
            measured_bits_per_second=109 * GIGABIT,
            transport=LinkTransport.ROCE,
        ),
        description="one of the two PCIe functions of a DGX Spark port at 200 Gb/s, as measured with ib_write_bw",
        source="Tensor-parallel network study (October 2026), section 7.3: 109 Gb/s; a public runbook has 111.7",
    ),
    LinkPreset(
        name="spark-2f",
        link=Link(
            line_rate_bits_per_second=200 * GIGABIT,
            roce_mtu_bytes=_STANDARD_ROCE_MTU_BYTES,
            pcie_function_count=2,
            transport=LinkTransport.ROCE,
        ),
        description="both PCIe functions of a DGX Spark port at 200 Gb/s, Ethernet MTU 1500",
        source=(
            "The formula agrees with public ib_write_bw runs of both functions: 185 Gb/s, and 196 Gb/s at MTU 9000;"
            " nccl-tests shows 22 to 24 GB/s"
        ),
    ),
    LinkPreset(
        name="spark-10g",
        link=Link(
            line_rate_bits_per_second=10 * GIGABIT,
            ethernet_mtu_bytes=_STANDARD_ETHERNET_MTU_BYTES,
            measured_bits_per_second=9_440_000_000,
            transport=LinkTransport.TCP,
        ),
        description="the RJ45 port of a DGX Spark, as measured with nccl-tests over 4 nodes",
        source="Study of bandwidth and training speed on 1 to 4 DGX Spark, section 6: 1.18 GB/s",
    ),
)


def _fabric(name: str, bits_per_second: int, description: str, source: str) -> LinkPreset:
    link = Link(line_rate_bits_per_second=bits_per_second, transport=LinkTransport.FABRIC)
    return LinkPreset(name=name, link=link, description=description, source=source)


def _nvlink(generation: int, gigabytes_per_second: int, accelerator: str) -> LinkPreset:
    return _fabric(
        f"nvlink{generation}",
        gigabytes_per_second * GIGABYTES_IN_BITS,
        f"NVLink {generation} of one {accelerator}, one direction: {gigabytes_per_second} GB/s, half of its data sheet",
        f"NVIDIA data sheet of the {accelerator}: {2 * gigabytes_per_second} GB/s, both directions",
    )


def _infiniband(name: str, generation: str, gigabits: int) -> LinkPreset:
    return LinkPreset(
        name=name,
        link=Link(
            line_rate_bits_per_second=gigabits * GIGABIT,
            roce_mtu_bytes=_INFINIBAND_MTU_BYTES,
            transport=LinkTransport.INFINIBAND,
        ),
        description=f"InfiniBand {generation}, 4 lanes, MTU 4096",
        source="InfiniBand architecture specification, volumes 1 and 2: rate after line coding, headers",
    )


_PCIE_TRANSFERS_PER_SECOND = {3: 8 * GIGABIT, 4: 16 * GIGABIT, 5: 32 * GIGABIT}


def _pcie(generation: int, lane_count: int) -> LinkPreset:
    raw_bits_per_second = lane_count * _PCIE_TRANSFERS_PER_SECOND[generation]
    return _fabric(
        f"pcie{generation}-x{lane_count}",
        raw_bits_per_second * 128 // 130,
        f"PCIe Gen{generation} x{lane_count}, one direction, after line coding; packet headers take 9 to 16 % more",
        f"PCI Express {generation}.0 base specification: 128b/130b",
    )


_FABRICS = (
    _nvlink(2, 150, "V100 SXM2"),
    _nvlink(3, 300, "A100 SXM4"),
    _nvlink(4, 450, "H100 SXM5"),
    _nvlink(5, 900, "B200"),
    _fabric(
        "nvlink-bridge",
        450 * GIGABIT,
        "NVLink bridge of one GeForce RTX 3090 or RTX A6000, one direction: 56.25 GB/s",
        "NVIDIA GA102 architecture paper: 4 links of 14.0625 GB/s in each direction",
    ),
    _fabric(
        "thunderbolt4",
        40 * GIGABIT,
        "Thunderbolt 4, one direction, line rate; what a network over it reaches has to be measured",
        "Intel Thunderbolt 4 product brief: 40 Gb/s",
    ),
    _fabric(
        "thunderbolt5",
        80 * GIGABIT,
        "Thunderbolt 5, one direction, line rate; what a network over it reaches has to be measured",
        "Intel Thunderbolt 5 product brief: 80 Gb/s in each direction",
    ),
    _pcie(3, 16),
    _pcie(4, 8),
    _pcie(4, 16),
    _pcie(5, 8),
    _pcie(5, 16),
)

LINK_PRESETS: tuple[LinkPreset, ...] = (
    *_SPARK,
    *_ethernet(),
    _infiniband("infiniband-edr", "EDR", 100),
    _infiniband("infiniband-hdr", "HDR", 200),
    _infiniband("infiniband-ndr", "NDR", 400),
    *_FABRICS,
)
"""Every link with a name."""

_BY_NAME: Mapping[str, LinkPreset] = {preset.name: preset for preset in LINK_PRESETS}


def preset_named(name: str) -> LinkPreset | None:
    """The preset with this name, case and blanks around it aside."""
    return _BY_NAME.get(name.strip().casefold())


def parse_link(text_of_link: str, field_name: str = "link") -> Link:
    """A link as people write it: the name of a preset, or an effective rate such as `200g`.

    Raises InvalidArgumentError on `field_name` for anything else, with near names.
    """
    preset = preset_named(text_of_link)
    if preset is not None:
        return preset.link
    try:
        return Link(line_rate_bits_per_second=parse_rate_bits_per_second(text_of_link, field_name))
    except InvalidArgumentError as error:
        near = _near_names(text_of_link)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        description = f"{error.field_violations[0].description}, nor the name of a link{hint}"
        raise InvalidArgumentError([Violation(field_name, description)]) from None


def _near_names(name: str) -> list[str]:
    # Only a request that fails needs it.
    from difflib import get_close_matches

    return get_close_matches(name.strip().casefold()[:64], _BY_NAME, n=3, cutoff=0.6)
