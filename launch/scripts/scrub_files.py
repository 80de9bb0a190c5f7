"""How the copies of launch/scrub-trace come to be: whole and under their name, or not at all."""
import contextlib
import os
import re

FLAGS, DATA, WRITING = 2, 3, 1  # exit codes
LARGEST_RANK = (1 << 20) - 1  # as the readers of sidestream-trace


class Problem(Exception):
    """Why a trace has no copy, in one line, and the exit code for it."""

    def __init__(self, text, code=DATA):
        super().__init__(" ".join(str(text).split()))
        self.code = code


def rank_in(name):
    found = re.search(r"(?:rank[-_]?)(\d+)|_(\d{5})\.", name)
    return checked_rank(int((found[1] or found[2])[:20]), name) if found else 0


def checked_rank(rank, where):
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank <= LARGEST_RANK:
        raise Problem(f"{where}: expected a rank from 0 to {LARGEST_RANK}, found {shown(rank)}")
    return rank


def shown(value):
    """A value of a file, short enough for a message."""
    names = {type(None): "null", list: "a list", dict: "an object"}
    return names.get(type(value)) or repr(value)[:60]


@contextlib.contextmanager
def result_at(copy, source):
    """A path to write to, which gets the name `copy` once the block has ended well; else nothing stays."""
    part = copy.with_name(f".{copy.name}.part")
    try:
        if copy.exists():
            raise Problem(f"{source}: its copy would be {copy}, which is there already: give another --output", FLAGS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        yield part
        os.replace(part, copy)
    except OSError as error:
        raise Problem(f"{copy}: writing the copy failed: {error.strerror or error}", WRITING) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
