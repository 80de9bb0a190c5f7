"""--optimizer-state-dtype bf16: learns as fp32 does, goes on bit for bit, on other numbers of ranks and from checkpoints in fp32, too."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import struct

from support import SMALL, TINY, check, check_near, checkpoint, expect, losses, losses_apart, make_data, train, workspace

CHECKPOINT = 4
BF16 = ["--optimizer-state-dtype", "bf16"]
GLOBAL_BATCH = 6


def tensors_in(file):
    """Name -> (type, bytes)."""
    content = file.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header.pop("__metadata__", None)
    return {name: (one["dtype"], content[end + one["data_offsets"][0]:end + one["data_offsets"][1]]) for name, one in header.items()}


def moments(run_dir, step):
    found = {}
    for file in sorted(checkpoint(run_dir, step).glob("optimizer_*.safetensors")):
        found |= tensors_in(file)
    return found


def types_of(tensors):
    return {kind for kind, _ in tensors.values()}


def same_end(one, other, step):
    same_weights = tensors_in(checkpoint(one, step) / "model.safetensors") == tensors_in(checkpoint(other, step) / "model.safetensors")
    return same_weights and moments(one, step) == moments(other, step)


def common_flags(root, lr="1e-3"):
    return TINY + ["--data", str(root / "data"), "--lr", lr, "--lr-schedule", "constant"]


def check_learning(root):
    """Near the losses of fp32, and not the same; weights are kept in fp32, moments in half of it."""
    for name, lr in {"adamw": "1e-3", "sgd": "0.05"}.items():
        flags = common_flags(root, lr) + ["--batch-size-per-rank", "4", "--steps", "40", "--algorithm", name]
        wide, narrow = root / f"{name}-fp32", root / f"{name}-bf16"
        train(2, wide, flags)
        train(2, narrow, flags + BF16)
        apart = losses_apart(wide, narrow)
        check(0 < apart < 0.03, f"{name}: losses differ by {apart}")
        check(losses(narrow)[0] - losses(narrow)[-1] > 0.2, f"{name}: the loss does not fall: {losses(narrow)}")
        check(types_of(moments(wide, 40)) == {"F32"} and types_of(moments(narrow, 40)) == {"BF16"}, f"{name}: types of moments")
        check(types_of(tensors_in(checkpoint(narrow, 40) / "model.safetensors")) == {"F32"}, f"{name}: type of weights")


def check_resumed(root):
    """Bit for bit, whoever keeps the state."""
    variants = {"fused": [], "bf16-weights": ["--precision", "bf16"], "unfused": ["--fused-optimizer", "off"],
                "sgd": ["--algorithm", "sgd"], "sgd-without-state": ["--algorithm", "sgd", "--momentum", "0"]}
    for name, more in variants.items():
        flags = common_flags(root, "0.05" if "sgd" in name else "1e-3") + ["--batch-size-per-rank", "4", "--dropout", "0.1", *BF16]
        whole, parts = root / f"whole-{name}", root / f"parts-{name}"
        train(2, whole, flags + more + ["--steps", "12"])
        train(2, parts, flags + more + ["--steps", "5", "--zero", "0"])
        train(2, parts, flags + more + ["--steps", "12", "--resume", "auto"])
        check(losses(parts) == losses(whole), f"{name}: {losses(parts)} is not {losses(whole)}")
        check(same_end(parts, whole, 12), f"{name}: other weights or moments at the end")


def skip_one_step(ranks, run_dir, step, flags):
    """Resumes and saves after a step without an update: what is saved is what was loaded."""
    train(ranks, run_dir, flags + ["--steps", str(step), "--resume", "auto", "--nan-policy", "skip", "--inject", f"nan:step={step}"])


def check_other_worlds(root):
    """The state is loaded bit for bit by any number of ranks; from there on only the order of sums differs."""
    flags = common_flags(root) + BF16
    batch = "--batch-size-per-rank"
    train(1, root / "one", flags + [batch, str(GLOBAL_BATCH), "--steps", "16"])
    for number, (before, after, more) in enumerate([(2, 1, []), (1, 3, ["--zero", "1"]), (3, 2, ["--zero", "0"])]):
        run_dir = root / f"worlds-{number}"
        train(before, run_dir, flags + [batch, str(GLOBAL_BATCH // before), "--steps", "8"])
        copied = shutil.copytree(run_dir, root / f"copied-{number}")
        skip_one_step(after, copied, 9, flags + [batch, str(GLOBAL_BATCH // after), *more])
        check(moments(copied, 9) == moments(run_dir, 8), f"{before} to {after} ranks: other moments were loaded")
        train(after, run_dir, flags + [batch, str(GLOBAL_BATCH // after), "--steps", "16", "--resume", "auto", *more])
        check_near(f"{before} ranks, resumed by {after}, and one", run_dir, root / "one", 1e-3, norms=0.02)


def nearest(bytes_of_floats):
    """To nearest even, of finite numbers."""
    words = struct.unpack(f"<{len(bytes_of_floats) // 4}I", bytes_of_floats)
    return struct.pack(f"<{len(words)}H", *((word + 0x7FFF + (word >> 16 & 1)) >> 16 for word in words))


def widened(bytes_of_halves):
    halves = struct.unpack(f"<{len(bytes_of_halves) // 2}H", bytes_of_halves)
    return struct.pack(f"<{len(halves)}I", *(half << 16 for half in halves))


def check_other_type(root):
    """fp32, then bf16, then fp32 again: rounded to nearest, widened, and said so."""
    flags = common_flags(root) + ["--batch-size-per-rank", "4"]
    train(2, root / "wide", flags + ["--steps", "18"])
    run_dir = root / "types"
    for steps, kind, line in ((6, "fp32", None), (12, "bf16", "has the optimizer's state in fp32, and this run keeps it in bf16: rounded to nearest even"),
                              (18, "fp32", "has the optimizer's state in bf16, and this run keeps it in fp32: widened")):
        output = train(2, run_dir, flags + ["--steps", str(steps), "--optimizer-state-dtype", kind, "--resume", "auto"])
        check("the optimizer's state in" not in output if line is None else output.count(line) == 1, f"to {kind} at step {steps}:\n{output}")
        check((f"other than in the run so far: optimizer-state-dtype = {kind}" in output) == (steps > 6), output)
        check(types_of(moments(run_dir, steps)) == {"F32" if kind == "fp32" else "BF16"}, f"{kind}: types of moments")
    apart = losses_apart(run_dir, root / "wide")
    check(losses(run_dir)[:6] == losses(root / "wide")[:6] and 0 < apart < 0.03, f"losses differ by {apart}")

    for name, begin, more, convert in (("narrowed", [], BF16, nearest), ("widened", BF16, [], widened)):
        train(2, root / name, flags + begin + ["--steps", "3"])
        skip_one_step(2, root / name, 4, flags + more)
        before, after = moments(root / name, 3), moments(root / name, 4)
        check(before.keys() == after.keys() and all(after[key][1] == convert(before[key][1]) for key in before), f"{name}: other values")


def write_safetensors(file, tensors):
    """(type, shape, bytes) by name; those of four bytes first."""
    header, data = {}, b""
    for name, (kind, shape, content) in sorted(tensors.items(), key=lambda item: item[1][0] != "F32"):
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)


def with_another_type(folder, kind, convert):
    """One tensor of the optimizer in another type than the others, with right hashes."""
    file = next(folder.glob("optimizer_00000_*.safetensors"))
    content = file.read_bytes()
    header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    tensors = {name: (*one[:1], header[name]["shape"], one[1]) for name, one in tensors_in(file).items()}
    victim = sorted(tensors)[-1]
    tensors[victim] = (kind, tensors[victim][1], convert(tensors[victim][2]))
    write_safetensors(file, tensors)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]
    for entry in manifest["files"]:
        if entry["name"] == file.name:
            entry |= {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    (folder / "manifest.json").write_text(json.dumps(manifest | {"sha256": hashlib.sha256(text.encode()).hexdigest()}))
    return victim


def check_mixed_types(root):
    """A file that no run writes: refused with the file, the tensor and what was expected."""
    flags = common_flags(root) + ["--batch-size-per-rank", "4"]
    train(1, root / "sound", flags + BF16 + ["--steps", "2"])
    for kind, convert, words in (("F32", widened, "in BF16 as"), ("F16", bytes, "in F32 or BF16")):
        run_dir = shutil.copytree(root / "sound", root / f"mixed-{kind}")
        victim = with_another_type(checkpoint(run_dir, 2), kind, convert)
        for ranks in (1, 2):
            expect(CHECKPOINT, ["optimizer_00000_of_00001.safetensors", victim, words, f"found {kind}"], ranks,
                   flags + BF16 + ["--steps", "3", "--run-dir", str(run_dir), "--resume", "auto"])


def check_plan(root):
    """--dry-run counts half of the moments, and the copy of a checkpoint with them."""
    flags = SMALL + ["--data", str(root / "data"), "--batch-size-per-rank", "4", "--dry-run", "--checkpoint-every", "2"]

    def planned(more):
        output = train(1, root / "planned", flags + more)
        return {name: float(size) for name, size in re.findall(r"^  ([a-z ]+?) +([0-9.]+) MiB", output, re.MULTILINE)}

    wide, narrow = planned([]), planned(BF16)
    check(abs(narrow["moments"] - wide["moments"] / 2) < 0.11 and wide["moments"] > 0.5, f"{wide} {narrow}")
    for key in ("together", "and a copy of"):
        check(abs(wide[key] - narrow[key] - (wide["moments"] - narrow["moments"])) < 0.21, f"{key}: {wide} {narrow}")


def main():
    os.environ["SIDESTREAM_FAULT_INJECTION"] = "1"
    with workspace() as folder:
        root = pathlib.Path(folder)
        make_data(root / "data")
        check_learning(root)
        check_resumed(root)
        check_other_worlds(root)
        check_other_type(root)
        check_mixed_types(root)
        check_plan(root)


main()
