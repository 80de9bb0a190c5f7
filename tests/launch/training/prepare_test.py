"""`prepare` without a terminal says how far it is; interrupted, it leaves nothing behind, and it clears up after the killed."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sys
import time

from support import (BINARY, ROOT, TINY, check, checkpoint, environment, faulty_environment, may_mount, run, run_command, running, train,
                     wait_for_step, wait_until, workspace)
from terminals import said_to_terminal

COPIES = 600  # of a megabyte, as links: a minute of work for one thread


def make_input(root):
    """Much text that takes no room."""
    folder = root / "text"
    folder.mkdir()
    text = b"".join(path.read_bytes() for path in sorted((ROOT / "core").rglob("*.cpp")))
    (folder / "0.txt").write_bytes((text * (1 + (1 << 20) // len(text)))[:1 << 20])
    for copy in range(1, COPIES):
        os.link(folder / "0.txt", folder / f"{copy}.txt")
    return folder


@contextlib.contextmanager
def started(text, output):
    """A call that has begun to write, the folder it writes to, and the file that has what it says."""
    said = output.parent / "said.txt"
    command = [BINARY, "prepare", "--input", text, "--output", output, "--threads", "1", "--tokenizer", output.parent / "tokenizer.json"]
    with open(said, "w") as file, running(command, environment(), stdout=file) as process:
        staged = pathlib.Path(f"{output}.tmp.{socket.gethostname()}.{process.pid}")
        wait_until(process, lambda: staged.exists() and any(part.stat().st_size for part in staged.iterdir()), "prepare writes")
        yield process, staged, said


def progress_in(said):
    return [line for line in said.read_text().splitlines() if line.startswith("prepare: ") and " % of " in line]


def check_interrupted(root, text):
    """Until then it says how far it is: every three seconds, where there is no terminal."""
    for number, lines in ((signal.SIGINT, 2), (signal.SIGTERM, 0)):
        begin = time.monotonic()
        with started(text, root / "out") as (process, staged, said):
            wait_until(process, lambda: len(progress_in(said)) >= lines, f"{lines} lines of progress")
            process.send_signal(number)
            code = process.wait(timeout=60)
        took_s = time.monotonic() - begin
        check(code == 128 + number, f"ended with {code} after {number!r}\n{said.read_text()}")
        check(not staged.exists() and not (root / "out").exists(), f"left behind after {number!r}: {list(root.iterdir())}")
        check(len(progress_in(said)) <= took_s / 3 + 1, f"{took_s:.1f} s without a terminal: {said.read_text()}")


def on_a_terminal(root, name, kind, columns):
    """What a short call says to a terminal of this kind, so wide."""
    words = (BINARY, "prepare", "--input", root / "short.txt", "--output", root / name)
    code, said = said_to_terminal(words, {**environment(), "TERM": kind}, columns, stream="stderr")
    check(code == 0, f"ended with {code}: {said}")
    return said


def check_terminals(root):
    """One line that changes, no wider than the terminal; a dumb one gets none of it."""
    (root / "short.txt").write_text("Some words of a text.\n" * 5000)
    narrow = on_a_terminal(root, "narrow", "xterm", 20)
    drawn = [part.replace("\033[K", "") for part in narrow.split("\r")]
    check(any(" % of " in part for part in drawn) and max(map(len, drawn)) < 20, repr(narrow))
    dumb = on_a_terminal(root, "dumb", "dumb", 80)
    check("\033" not in dumb and " % of " not in dumb, repr(dumb))


def check_killed(root, text):
    """The next call removes what a killed one has left, and nothing of one that is at work."""
    with started(text, root / "out") as (process, stale, _):
        process.kill()
        process.wait()
    check(stale.exists(), "a killed process has nothing to be cleared up")
    with started(text, root / "out") as (other, busy, _):
        check(not stale.exists(), "the leftovers of a dead process are still there")
        small = root / "small"
        small.mkdir()
        (small / "a.txt").write_text("one file\n" * 1000)
        run(1, [BINARY, "prepare", "--input", small, "--output", root / "out"])
        check(busy.exists(), "the folder of a process that is at work was removed")
        other.terminate()
        other.wait(timeout=60)
    check(not busy.exists() and (root / "out/dataset.json").exists(), f"found {list(root.iterdir())}")


def check_unreadable(root):
    """A folder that cannot be read is told, and what lies beside it is taken. (Of root's rights to read everything, none are left.)"""
    folder = root / "unreadable"
    (folder / "closed").mkdir(parents=True)
    (folder / "closed/c.txt").write_text("not to be seen\n" * 100)
    (folder / "a.txt").write_text("to be seen\n" * 100)
    (folder / "closed").chmod(0)
    capabilities = "-dac_override,-dac_read_search"
    as_nobody = ["setpriv", "--inh-caps", capabilities, "--bounding-set", capabilities] if os.geteuid() == 0 else []
    output = run(1, [*as_nobody, BINARY, "prepare", "--input", folder, "--output", root / "readable"])
    check("1 file was skipped, the first: unreadable/closed/ (cannot read this folder: Permission denied)" in output, output)
    (root / "something").write_text("no folder")
    output = run(1, [BINARY, "prepare", "--input", folder, "--output", root / "something"], 2)
    check("something: expected a folder, found something else" in output, output)


def check_places(root):
    """Through a link the folder is made where that leads to; a mount point, which no folder can be renamed to, is refused at once."""
    (root / "place").mkdir()
    (root / "link").symlink_to("place")
    prepare = [BINARY, "prepare", "--input", root / "small", "--output"]
    run(1, [*prepare, root / "link"])
    check((root / "link").is_symlink() and (root / "place/dataset.json").exists(), f"found {list(root.iterdir())}")
    if may_mount():
        (root / "mounted").mkdir()
        script = f'mount -t tmpfs tmpfs {root / "mounted"} && exec "$@"'
        output = run_command(["unshare", "--mount", "sh", "-c", script, "sh", *map(str, prepare), str(root / "mounted")], 2)
        check("is a mount point" in output and "a folder inside it" in output, output)


def check_end_of_text(root):
    """What generate() of transformers stops at is the tokenizer's own end of a text, whatever its number."""
    run(1, [BINARY, "prepare", "--input", ROOT / "core", "--include", "*.hpp", "--tokenizer", root / "tokenizer.json", "--output", root / "bpe"])
    train(1, root / "run", [*TINY, "--data", root / "bpe", "--steps", "1", "--batch-size-per-rank", "1"])
    config = json.loads((checkpoint(root / "run", 1) / "config.json").read_text())
    expected = json.loads((root / "bpe/dataset.json").read_text())["end_of_text"]
    check(config["eos_token_id"] == config["bos_token_id"] == expected == 0, f"{config}, {expected}")


def check_tokenizer_is_kept(root):
    """A checkpoint has the tokenizer that its run began with, also where the folder of the data is gone by then."""
    data, run_dir = root / "unmounted", root / "kept"
    shutil.copytree(root / "bpe", data)
    flags = [*TINY, "--data", data, "--steps", "60", "--batch-size-per-rank", "1", "--inject", "slow:rank=0,ms=20"]
    said = root / "kept.txt"
    command = [BINARY, "train", "--run-dir", run_dir, *flags]
    with open(said, "w") as file, running(command, faulty_environment(), stdout=file) as process:
        wait_for_step(process, run_dir, 1)
        data.rename(root / "elsewhere")
        code = process.wait(timeout=60)
    check(code == 0, f"ended with {code}\n{said.read_text()}")
    kept = (checkpoint(run_dir, 60) / "tokenizer.json").read_bytes()
    check(kept == (root / "bpe/tokenizer.json").read_bytes(), "the checkpoint has another tokenizer")


def check_bytes_in_a_larger_vocabulary(root):
    """What comes after its 257 tokens is never drawn; of another kind of tokens it is told by what ends a text."""
    train(1, root / "bytes", [*TINY, "--data", root / "out", "--vocab-size", "320", "--steps", "1", "--batch-size-per-rank", "1"])
    folder = checkpoint(root / "bytes", 1)
    run(1, [BINARY, "generate", "--checkpoint", folder, "--tokens", "5"])
    config = json.loads((folder / "config.json").read_text())
    foreign = root / "foreign"
    foreign.mkdir()
    shutil.copy(folder / "model.safetensors", foreign)
    (foreign / "config.json").write_text(json.dumps({**config, "eos_token_id": 0}))
    output = run(1, [BINARY, "generate", "--checkpoint", foreign, "--tokens", "5"], 4)
    check("has no tokenizer.json" in output, output)


def make_tokenizer(root):
    """Byte-level BPE: slow enough to be interrupted."""
    run(1, [sys.executable, ROOT / "core/data/train_tokenizer.py", "--vocab-size", "400", "--include", "*.cpp", "--output",
            root / "tokenizer.json", ROOT / "core"])


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        make_tokenizer(root)
        check_unreadable(root)
        check_terminals(root)
        text = make_input(root)
        check_interrupted(root, text)
        check_killed(root, text)
        check_places(root)
        check_end_of_text(root)
        check_tokenizer_is_kept(root)
        check_bytes_in_a_larger_vocabulary(root)


main()
