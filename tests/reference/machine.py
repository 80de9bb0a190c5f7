"""What a measurement was taken on."""
import datetime
import os
import pathlib


def processor():
    """As the programs write it into run.json."""
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def today_here():
    """'2026-01-31, Some Processor, 2 cores'"""
    return f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores"
