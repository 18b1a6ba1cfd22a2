"""How long one collective takes: by algorithm, by the library's own time model, and by measured times.

Seconds and bytes are of one collective. `fit` makes a calibration of measured times, `calibrated_seconds` asks it.
"""

from estimator_service.core.collective_time.algorithms import (
    Group,
    SentBytes,
    Steps,
    algorithm_sent_bytes,
    algorithm_steps,
    busiest_sent_bytes,
)
from estimator_service.core.collective_time.calibrated import (
    CalibratedTime,
    WireTime,
    calibrated_seconds,
    calibrated_time,
    covers,
    is_library_choice,
)
from estimator_service.core.collective_time.fit import fit
from estimator_service.core.collective_time.library_model import Rates, library_choices, seconds_on_links

__all__ = [
    "CalibratedTime",
    "Group",
    "Rates",
    "SentBytes",
    "Steps",
    "WireTime",
    "algorithm_sent_bytes",
    "algorithm_steps",
    "busiest_sent_bytes",
    "calibrated_seconds",
    "calibrated_time",
    "covers",
    "fit",
    "is_library_choice",
    "library_choices",
    "seconds_on_links",
]
