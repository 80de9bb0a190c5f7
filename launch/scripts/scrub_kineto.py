"""A clean copy of a Kineto trace: its events, and what readers need beside them."""
import gzip
import json
import re
import zlib

from scrub_files import Problem, checked_rank, rank_in, result_at, shown
from scrub_text import LeftOver

# All other keys at the top go: names of files and hosts; versions of drivers may stay.
KEPT_KEYS = {"schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents",
             "cuda_runtime_version", "cuda_driver_version", "cupti_version", "record_shapes", "profile_memory", "with_stack",
             "with_flops", "with_modules", "sidestream"}
# Keys of the format say nothing about a machine, whatever --also names.
FORMAT_KEYS = KEPT_KEYS | {
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp", "s", "labels", "sort_index", "rank", "world_size", "backend",
    "device", "context", "stream", "correlation", "External id", "cbid", "grid", "block", "queued", "bytes", "Call stack", "Ev Idx",
    "Record function id", "Sequence number", "Fwd thread id", "Input Dims", "Input type", "Input Strides", "Concrete Inputs",
    "registers per thread", "shared memory", "blocks per SM", "warps per SM", "est. achieved occupancy %", "Module Hierarchy",
    "Collective name", "In msg nelems", "Out msg nelems", "dtype", "Group size", "Process Group Name", "Process Group Ranks", "Seq",
    "Addr", "Bytes", "Device Id", "Device Type", "Total Allocated", "Total Reserved", "Python id", "Python parent id", "kernel"}


def scrub_kineto(path, output, cleaner):
    trace = whole_trace(path)
    info = trace.get("distributedInfo", {})
    if not isinstance(info, dict):
        raise Problem(f"{path}: expected an object as distributedInfo, found {shown(info)}")
    rank = checked_rank(info["rank"], f"{path}: distributedInfo") if "rank" in info else rank_in(path.name)
    try:
        text = json.dumps(clean({key: value for key, value in trace.items() if key in KEPT_KEYS}, cleaner), separators=(",", ": "))
    except LeftOver as problem:
        raise Problem(f"{path}: {problem}") from None
    except RecursionError:
        raise nested_too_deeply(path) from None
    with result_at(output / name_of_copy(path, rank), path) as part, open(part, "wb") as file:
        # No name and no time in the header of the packed file.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            packed.write(text.encode())


def whole_trace(path):
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace") as file:
            trace = json.load(file)
    except RecursionError:
        raise nested_too_deeply(path) from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise Problem(f"{path}: expected a whole trace, found one that cannot be read: {error}") from error
    if isinstance(trace, list):
        trace = {"traceEvents": trace}
    if not isinstance(trace, dict):
        raise Problem(f"{path}: expected an object or a list of events, found {shown(trace)}")
    if not isinstance(trace.get("traceEvents"), list):
        raise Problem(f"{path}: expected a list as traceEvents, found {shown(trace.get('traceEvents'))}")
    return trace


def nested_too_deeply(path):
    return Problem(f"{path}: expected a trace, found values nested too deeply for one")


def name_of_copy(path, rank):
    """The number before .pt.trace.json, a step or a time, tells the windows of a rank apart."""
    number = re.search(r"\.(\d+)\.pt\.trace\.json", path.name)
    return f"node0_{rank:05}{'.' + number[1] if number else ''}.pt.trace.json.gz"


def clean(value, cleaner):
    """The value with clean texts; keys stay. LeftOver: something in it cannot be cleaned."""
    if isinstance(value, str):
        return cleaner.checked(value)
    if isinstance(value, list):
        return [clean(one, cleaner) for one in value]
    if isinstance(value, dict):
        return {key: clean_member(key, one, cleaner) for key, one in value.items()}
    return value


def clean_member(key, value, cleaner):
    if key not in FORMAT_KEYS:
        cleaner.fixed(key, "the key")
    if key in ("ph", "s", "bp") and isinstance(value, str) and len(value) == 1:
        return value  # a letter of the format
    if key == "cat" and isinstance(value, str):
        cleaner.fixed(value, "the category")  # readers tell kernels from operators by it
        return value
    return clean(value, cleaner)
