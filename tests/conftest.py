"""What every test shares: hypothesis profiles."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_COMMON = {
    "deadline": None,  # the machine is shared
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("default", derandomize=True, **_COMMON)  # the same cases on every machine
settings.register_profile("random", **_COMMON)  # new cases on every run
settings.register_profile(  # one failure is enough, however large its case
    "mutation", derandomize=True, phases=[Phase.explicit, Phase.generate], **_COMMON
)
settings.load_profile(os.environ.get("BOXSCORE_HYPOTHESIS", "default"))
