"""What engine times assume, and which terms points could not tell, in words."""

from __future__ import annotations

from collections.abc import Mapping

from linkbound.domain.engine import EngineTermKind

TERM_WORDS: Mapping[EngineTermKind, str] = {
    EngineTermKind.PASS: "a fixed time of each pass",
    EngineTermKind.ROW: "a time of each token row",
    EngineTermKind.ATTENTION: "a time of each token that a row attends to",
    EngineTermKind.CHUNK: "a further time of rows times the rows of the same request in the pass",
    EngineTermKind.BATCH: "a time of each request in a pass beyond the first",
    EngineTermKind.DECODE_PASS: "a fixed time of each pass in which every request generates",
    EngineTermKind.DECODE_REQUEST: "a time of each request in such a pass beyond the first",
    EngineTermKind.DECODE_CONTEXT: "a time of each token in the caches of such a pass",
}
"""What a term is, for people."""

ADDED_IN_TURN = "A pass takes its transfers and its arithmetic one after the other."
EVERY_SIZE_AT_RATE = "Without bursts, transfers of every size reach the effective rate of the link."
TOP_OF_BURSTS = (
    "Bursts count at their largest rate over the mean header ratio: a window across the edge of a burst reads lower."
)
NO_OUTPUT_SPEEDS = (
    "No output speed was measured: what passes take that only generate is not known, and no time is expected of which"
    " they are part. Arrivals by time are replayed as if they took what prompts do."
)
NOT_SETTLED = "Arrivals by time and the times of passes did not settle on one schedule; the last one counts."
NO_PROMPT_TIMES = "No TTFT was measured: what passes take that read prompts is not known."
SKIPPED = "{}: not all of its figures are used, since no other figure tells what some of their passes take."
NOT_THERE = "No point has any of it: {} is left out."
NOT_APART = "Points cannot tell it from the other terms: {} is left out."
TOO_FEW = "Points are too few, or one alone would vouch for it: {} is left out."
NO_BETTER = "Points that are left out are predicted no better with it: {} is left out."
NO_TIME = "Least squares give it no time: {} is left out."
MAY_SPLIT = (
    "Requests that arrive together may be parted by the first pass, over either link in another way; what follows of it"
    " is in the intervals, and expected is that none are."
)
SCALED = (
    "All arithmetic is split evenly: {} ranks become {}. Whether the fixed part of a pass is, nobody measured:"
    " the interval has both."
)
MEASURED_ITSELF = (
    "These requests were measured as a point of the calibration: its times count in place of the fit, from the least to"
    " the largest of its rounds, or a twentieth either way where their range is not known."
)
APART_FROM_PASSES = (
    "First tokens of one pass were measured apart, or some later than passes after them allow: passes add up to the"
    " last first token, and not to each."
)
MEASURED_ELSEWHERE = (
    "These requests were measured as a point of the calibration, on other ranks: in its ratio to the fit, and as far"
    " off as the fit and its rounds."
)
OTHER_DRAFTS = (
    "Times were measured with {} draft tokens, and are asked with {}: generating rows that differ take between nothing"
    " and what a row of a prompt takes, and what the drafter itself takes is left out."
)
FAR_BEYOND = (
    "Requests lie so far beyond what was measured, or hold so much of what no point tells, that nothing bounds some of"
    " their times from above."
)
NO_POINT_LEFT_OUT = "With so few points none could be left out, so that nothing bounds how far the fit is off."


def not_used(kind: EngineTermKind, sentence: str) -> str:
    """Why a term is not part of a fit (`docs/formulas.md`, Engine times)."""
    return sentence.format(TERM_WORDS[kind])
