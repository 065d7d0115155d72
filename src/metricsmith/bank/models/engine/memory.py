"""Free memory of this machine's devices."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["free_memory"]


def free_memory(device: str) -> int | None:
    """Bytes that are free on ``cpu`` or ``cuda``; None where nobody says."""
    if device.startswith("cuda"):
        from torch import cuda

        return int(cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        pages, size = os.sysconf_names.get("SC_AVPHYS_PAGES"), os.sysconf_names.get("SC_PAGE_SIZE")
        return None if pages is None or size is None else os.sysconf(pages) * os.sysconf(size)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)
