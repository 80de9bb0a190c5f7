"""Which device is measured, and what was built for it."""
import datetime
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "reference"))
from machine import processor  # noqa: E402

NAMES = "import json, torch; print(json.dumps([torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]))"


def gpu_names():
    """As PyTorch sees them, in a process of its own: this one holds no memory of a device."""
    done = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else []


def printed_by(*command):
    if not shutil.which(command[0]):
        return []
    return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()


def today():
    return datetime.date.today().isoformat()


def describe(device, build):
    """None where the device that was asked for is not there."""
    names = gpu_names() if device == "cuda" else [processor()]
    if not names:
        return None
    driver = printed_by("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader") if device == "cuda" else []
    return {"name": names[0], "date": today(), "details": driver + printed_by(build / "sidestream", "--version")}
