"""Splits traffic at the send, the first and the last token of requests, on the clock that both share."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, field, frozen

from ingest_service.core.traffic.curve import BITS_PER_BYTE, LARGEST_NS, NS_PER_SECOND
from ingest_service.core.traffic.probe import PortProbes
from linkbound.domain.records import RequestRecord
from linkbound.domain.traffic import PhaseTraffic


@frozen(order=True)
class Clock:
    """CLOCK_MONOTONIC of one boot of one host; times of two such clocks do not compare."""

    node: str
    boot_id: str


@frozen(kw_only=True)
class RequestPhases:
    """A request on its clock: when it was sent, and when its first and its last token came, where they did."""

    record: RequestRecord
    clock: Clock | None
    send_ns: int = 0
    first_token_ns: int | None = None
    last_token_ns: int | None = None

    @classmethod
    def of(cls, record: RequestRecord) -> RequestPhases:
        """Those of a request as it is stored; without a clock where its host or its send is not known."""
        if record.send_ns is None or not record.node:
            return cls(record=record, clock=None)
        return cls(
            record=record,
            clock=Clock(record.node, record.boot_id),
            send_ns=record.send_ns,
            first_token_ns=_behind(record.send_ns, record.ttft_ns),
            last_token_ns=_behind(record.send_ns, record.last_token_ns),
        )

    @property
    def end_ns(self) -> int:
        """When it was under way for the last time, as far as its tokens tell."""
        return max(self.send_ns, self.first_token_ns or 0, self.last_token_ns or 0)

    @property
    def times_ns(self) -> tuple[int, ...]:
        """Its times in order."""
        return tuple(at for at in (self.send_ns, self.first_token_ns, self.last_token_ns) if at is not None)


def _behind(send_ns: int, offset_ns: int | None) -> int | None:
    """The time of a token; None where there is none, or where 64 bits cannot say it, so that no reading covers it."""
    return None if offset_ns is None or send_ns + offset_ns > LARGEST_NS else send_ns + offset_ns


RoundKey = tuple[str, int]


@frozen(kw_only=True)
class RoundPrefill:
    """A round whose requests share a clock and all got a first token."""

    clock: Clock
    start_ns: int
    """Its first send."""
    end_ns: int
    """Its last first token."""
    prompt_tokens: int
    """Those of all its requests."""


def round_key(record: RequestRecord) -> RoundKey:
    """The round that a request belongs to."""
    return record.subject, record.round_index


def round_prefills(requests: Iterable[RequestPhases]) -> dict[RoundKey, RoundPrefill]:
    """The rounds of which the prefill of all requests is known; the others are left out."""
    rounds: dict[RoundKey, list[RequestPhases]] = {}
    for request in requests:
        rounds.setdefault(round_key(request.record), []).append(request)
    known: dict[RoundKey, RoundPrefill] = {}
    for key, members in rounds.items():
        clocks = {request.clock for request in members}
        ends_ns = [request.first_token_ns for request in members if request.first_token_ns is not None]
        clock = clocks.pop()
        if clock is not None and not clocks and len(ends_ns) == len(members):
            known[key] = RoundPrefill(
                clock=clock,
                start_ns=min(request.send_ns for request in members),
                end_ns=max(ends_ns),
                prompt_tokens=sum(request.record.prompt_tokens for request in members),
            )
    return known


@define
class Overlaps:
    """Counts requests that are under way at the same time, on each clock."""

    _starts_ns: dict[Clock, list[int]] = field(init=False, factory=dict)
    _ends_ns: dict[Clock, list[int]] = field(init=False, factory=dict)

    @classmethod
    def of(cls, requests: Iterable[RequestPhases]) -> Overlaps:
        """Those of all requests of a run."""
        overlaps = cls()
        for request in requests:
            if request.clock is not None:
                start_ns, end_ns = _span(request)
                overlaps._starts_ns.setdefault(request.clock, []).append(start_ns)
                overlaps._ends_ns.setdefault(request.clock, []).append(end_ns)
        for times_ns in (*overlaps._starts_ns.values(), *overlaps._ends_ns.values()):
            times_ns.sort()
        return overlaps

    def count(self, request: RequestPhases) -> int:
        """How many others are under way while `request` is, which is one of them."""
        if request.clock is None:
            return 0
        start_ns, end_ns = _span(request)
        begun = bisect_left(self._starts_ns[request.clock], end_ns)
        ended = bisect_right(self._ends_ns[request.clock], start_ns)
        return begun - ended - 1


def _span(request: RequestPhases) -> tuple[int, int]:
    """When it is under way, its end left out; a moment at least, so that one without tokens counts at its send."""
    return request.send_ns, max(request.end_ns, request.send_ns + 1)


@frozen(kw_only=True)
class PhaseContext:
    """What of the whole run the rows of single requests need."""

    rounds: Mapping[RoundKey, RoundPrefill]
    overlaps: Overlaps

    @classmethod
    def of(cls, requests: Sequence[RequestPhases]) -> PhaseContext:
        """That of all requests of a run."""
        return cls(rounds=round_prefills(requests), overlaps=Overlaps.of(requests))

    def times_ns(self, request: RequestPhases) -> Iterator[int]:
        """All times at which the bytes of its clock are needed for its rows."""
        yield from request.times_ns
        whole = self.rounds.get(round_key(request.record))
        if whole is not None:
            yield from (whole.start_ns, whole.end_ns)

    def row(self, request: RequestPhases, probes: PortProbes | None, port_index: int) -> PhaseTraffic:
        """The traffic of one port in the phases of `request`; without `probes` that of no port."""
        record = request.record
        overlap_count = self.overlaps.count(request)
        if probes is None:
            return _row(record, overlapping_request_count=overlap_count)
        prefill = _phase(probes, port_index, request.send_ns, request.first_token_ns)
        decode = _phase(probes, port_index, request.first_token_ns, request.last_token_ns)
        whole = self.rounds.get(round_key(record))
        of_round = None if whole is None else _phase(probes, port_index, whole.start_ns, whole.end_ns)
        key = probes.ports[port_index].key
        return _row(
            record,
            node=key.node,
            physical_port=key.physical_port,
            metric=key.metric,
            prefill=prefill,
            decode=decode,
            overlapping_request_count=overlap_count,
            round_prefill_bytes_per_prompt_token=(
                None if whole is None or of_round is None else of_round.byte_count / whole.prompt_tokens
            ),
        )


@frozen
class _Phase:
    """Bytes of a phase that readings cover, and how long it was."""

    byte_count: float
    length_ns: int

    @property
    def bits_per_second(self) -> float | None:
        return self.byte_count * BITS_PER_BYTE * NS_PER_SECOND / self.length_ns if self.length_ns else None


def _phase(probes: PortProbes, port_index: int, start_ns: int | None, end_ns: int | None) -> _Phase | None:
    if start_ns is None or end_ns is None:
        return None
    byte_count = probes.bytes_between(port_index, start_ns, end_ns)
    return None if byte_count is None else _Phase(byte_count, end_ns - start_ns)


def _row(
    record: RequestRecord,
    *,
    node: str = "",
    physical_port: str = "",
    metric: str = "",
    prefill: _Phase | None = None,
    decode: _Phase | None = None,
    overlapping_request_count: int,
    round_prefill_bytes_per_prompt_token: float | None = None,
) -> PhaseTraffic:
    is_alone = overlapping_request_count == 0
    return PhaseTraffic(
        subject=record.subject,
        round_index=record.round_index,
        request_index=record.request_index,
        prompt_tokens=record.prompt_tokens,
        output_tokens=record.output_tokens,
        node=node,
        physical_port=physical_port,
        metric=metric,
        prefill_bytes=None if prefill is None else prefill.byte_count,
        prefill_bits_per_second=None if prefill is None else prefill.bits_per_second,
        prefill_bytes_per_prompt_token=(
            prefill.byte_count / record.prompt_tokens if prefill is not None and is_alone else None
        ),
        decode_bytes=None if decode is None else decode.byte_count,
        decode_bits_per_second=None if decode is None else decode.bits_per_second,
        overlapping_request_count=overlapping_request_count,
        round_prefill_bytes_per_prompt_token=round_prefill_bytes_per_prompt_token,
    )
