"""Files of other programs, of newer versions, and files that are gone: damaged shards of Megatron-LM, a checkpoint of a newer version, one
that has lost a rank's moments. One message, the documented exit code, nothing changed; on one rank and on two."""

import hashlib
import json
import os
import pathlib
import struct

from support import TINY, check, checkpoint, expect, make_data, metrics, train, workspace

DATA, CHECKPOINT = 3, 4
INDEX_HEADER_BYTES = 34


def write_megatron(folder, sequences=40, length=50):
    """NAME.bin and NAME.idx as Megatron-LM's tools write them, of ids of two bytes below 257."""
    folder.mkdir()
    for split, seed in (("train", 1), ("val", 2)):
        ids = [(seed * 31 + 7 * i) % 257 for i in range(sequences * length)]
        (folder / f"{split}.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
        index = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, sequences, sequences + 1)
        index += struct.pack(f"<{sequences}i", *[length] * sequences)
        index += struct.pack(f"<{sequences}q", *[2 * length * i for i in range(sequences)])
        index += struct.pack(f"<{sequences + 1}q", *range(sequences + 1))
        (folder / f"{split}.idx").write_bytes(index)
    return folder


def damage(folder, name, change):
    file = folder / name
    content = bytearray(file.read_bytes())
    file.write_bytes(change(content))
    return folder


def put(offset, layout, value):
    def change(content):
        struct.pack_into(layout, content, offset, value)
        return content
    return change


def check_megatron(root):
    base = TINY + ["--vocab-size", "257", "--steps", "3", "--batch-size-per-rank", "2"]
    lengths = INDEX_HEADER_BYTES
    pointers = lengths + 4 * 40
    cases = [
        ("magic", "train.idx", put(0, "<c", b"X"), ["train.idx", "byte 0", "MMIDIDX"]),
        ("version", "train.idx", put(9, "<Q", 2), ["train.idx", "byte 9"]),
        ("type", "train.idx", put(17, "<B", 6), ["train.idx", "byte 17"]),
        ("vast", "train.idx", put(18, "<Q", 2**61), ["train.idx", "byte 18"]),
        ("length", "train.idx", put(lengths + 4, "<i", -50), ["train.idx", f"byte {lengths + 4}"]),
        ("gap", "train.idx", put(pointers + 8, "<q", 102), ["train.idx", f"byte {pointers + 8}"]),
        ("cut-index", "train.idx", lambda content: content[:300], ["train.idx"]),
        ("cut-shard", "train.bin", lambda content: content[:-100], ["train.idx"]),
        ("token", "train.bin", put(200, "<H", 9999), ["train.bin", "byte 200", "9999", "257"]),
        ("validation", "val.idx", put(0, "<c", b"X"), ["val.idx", "byte 0"]),
    ]
    for name, file, change, words in cases:
        folder = damage(write_megatron(root / name), file, change)
        for ranks in (1, 2):
            expect(DATA, words, ranks, base + ["--data", str(folder), "--run-dir", str(root / "never")])
    check(not (root / "never").exists(), "a refused call left a run directory behind")
    train(2, root / "megatron", base + ["--data", str(write_megatron(root / "good"))])
    check(len(metrics(root / "megatron")) == 3, "shards of Megatron-LM that are whole are not trained on")


def with_newer_version(manifest):
    """As a later version would write it: its own hash is right."""
    document = json.loads(manifest.read_text())
    del document["sha256"]
    document["format_version"] += 1
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    manifest.write_text(json.dumps(document | {"sha256": hashlib.sha256(text.encode()).hexdigest()}))


def files_of(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name not in ("lock", "config.cfg")}


def check_newer_checkpoint(root, flags):
    """The older checkpoint beside it could be loaded: going on from it would throw away what the newer program has done."""
    run_dir = root / "newer"
    train(2, run_dir, flags + ["--steps", "4", "--checkpoint-every", "2"])
    with_newer_version(checkpoint(run_dir, 4) / "manifest.json")
    before = files_of(run_dir)
    for ranks in (1, 2):
        expect(CHECKPOINT, ["step_00000004", "format_version", "a newer version wrote this checkpoint"], ranks,
               flags + ["--steps", "6", "--run-dir", str(run_dir), "--resume", "auto"])
    check(files_of(run_dir) == before, "a refused resume changed the run directory")


def check_lost_moments(root, flags):
    """The file of one rank's moments is gone: the checkpoint before it is taken, and said so; asked for by name it is refused."""
    run_dir = root / "lost"
    train(2, run_dir, flags + ["--steps", "4", "--checkpoint-every", "2", "--zero", "1"])
    os.remove(checkpoint(run_dir, 4) / "optimizer_00001_of_00002.safetensors")
    for ranks in (1, 2):
        expect(CHECKPOINT, ["optimizer_00001_of_00002.safetensors"], ranks,
               flags + ["--steps", "6", "--run-dir", str(root / "other"), "--resume", str(checkpoint(run_dir, 4))])
    output = train(2, run_dir, flags + ["--steps", "6", "--resume", "auto"])
    check("step_00000004" in output and "optimizer_00001_of_00002.safetensors" in output and "step_00000002, step 2" in output, output)
    check([line["step"] for line in metrics(run_dir)] == [1, 2, 3, 4, 5, 6], "steps are missing")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        check_megatron(root)
        flags = TINY + ["--data", str(make_data(root / "data")), "--batch-size-per-rank", "2", "--lr-schedule", "constant"]
        check_newer_checkpoint(root, flags)
        check_lost_moments(root, flags)


main()
