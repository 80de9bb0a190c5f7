"""Bad input before training: one message that names what is wrong, the documented exit code, no hang; on two ranks, and
where files are opened on one as well."""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

from support import (BINARY, ROOT, TINY, check, checkpoint, completed, environment, expect, make_data, metrics, only_message, run,
                     run_command, side_by_side, train, workspace)

CONFIG, DATA, CHECKPOINT = 2, 3, 4


def broken_data(good, folder, change):
    shutil.copytree(good, folder)
    shard = folder / "train_000000.bin"
    content = bytearray(shard.read_bytes())
    shard.write_bytes(change(content))
    return str(folder)


def put(offset, layout, value):
    def change(content):
        struct.pack_into(layout, content, offset, *(value if isinstance(value, tuple) else (value,)))
        return content
    return change


def check_flags(root, data):
    flags = TINY + ["--data", str(data), "--run-dir", str(root / "never"), "--steps", "3", "--batch-size-per-rank", "2"]
    config = root / "bad.cfg"
    for code, words, more in [
        (CONFIG, ["--overlapp", "--overlap"], ["--overlapp", "on"]),
        (CONFIG, ["--overl"], ["--overl", "on"]),
        (CONFIG, ["--seed", "twice"], ["--seed", "1", "--seed", "2"]),
        (CONFIG, ["--grad-clip", "wide"], ["--grad-clip", "wide"]),
        (CONFIG, ["--grad-accumulation"], ["--grad-accumulation", "0"]),
        (CONFIG, ["overlap", "bucketing"], ["--overlap", "on", "--bucketing", "off"]),
        (CONFIG, ["--offload optimizer moves what a GPU holds", "--zero 1"], ["--device", "cpu", "--offload", "optimizer"]),
        (CONFIG, ["--offload residuals moves what a GPU holds", "--recompute blocks"], ["--backend", "mpi", "--offload", "residuals"]),
        (CONFIG, ["nothing.cfg"], ["--config", str(root / "nothing.cfg")]),
    ]:
        expect(code, words, 2, flags + more)
    for text, words in [("no-such-key = 1\n", ["bad.cfg:1", "no-such-key"]), ("lr = 1\nlr = 2\n", ["bad.cfg:2", "lr"]),
                        ("lr = fast\n", ["bad.cfg:1", "lr", "fast"])]:
        config.write_text(text)
        expect(CONFIG, words, 2, flags + ["--config", str(config)])
    config.write_text("config = other.cfg\n")
    expect(CONFIG, ["bad.cfg:1", "config"], 2, flags + ["--config", str(config)])
    os.mkfifo(root / "pipe.cfg")
    for path in (root, root / "pipe.cfg", "/dev/zero"):
        expect(CONFIG, [str(path)], 2, flags + ["--config", str(path)])
    check(not (root / "never").exists(), "a refused call left a run directory behind")


def check_no_room(root, data):
    """A plan that no swap can help: refused before anything is allocated, with need, have and what takes less."""
    huge = ["--data", "synthetic", "--device", "cpu", "--model", "gpt2-1558m", "--batch-size-per-rank", "100000", "--run-dir", str(root / "never")]
    for ranks in (1, 2):
        expect(CONFIG, [f"{ranks} rank(s) need at least", "this machine has", "swap included", "--recompute blocks"], ranks, huge)
    check(not (root / "never").exists(), "a refused call left a run directory behind")


def check_data_folder(root, data):
    base = TINY + ["--run-dir", str(root / "never"), "--steps", "3", "--batch-size-per-rank", "2"]
    (root / "empty").mkdir()
    for name, words, change in [
        ("magic", ["train_000000.bin", "byte 0", "20240520"], put(0, "<i", 77)),
        ("version", ["train_000000.bin", "byte 4"], put(4, "<i", 9)),
        ("promise", ["train_000000.bin", "byte 8"], put(8, "<i", 2**30)),
        ("truncated", ["train_000000.bin"], lambda content: content[:1000]),
        ("token", ["train_000000.bin", "byte 1224", "257", "9999"], put(1224, "<H", 9999)),
    ]:
        expect(DATA, words, 2, base + ["--data", broken_data(data, root / name, change)])
    expect(DATA, ["nowhere"], 2, base + ["--data", str(root / "nowhere")])
    expect(DATA, ["empty"], 2, base + ["--data", str(root / "empty")])
    many = TINY + ["--run-dir", str(root / "never"), "--steps", "3", "--batch-size-per-rank", "1000000"]
    expect(DATA, ["batch"], 2, many + ["--data", str(data)])


def check_element_types(root, data):
    """Shards of two token widths, and a header that says another width than the file has."""
    base = TINY + ["--run-dir", str(root / "never"), "--steps", "3", "--batch-size-per-rank", "2"]
    mixed = shutil.copytree(data, root / "mixed")
    ids = struct.pack("<100I", *range(100))
    (mixed / "train_000001.bin").write_bytes(struct.pack("<256i", 20240801, 7, 100, *[0] * 253) + ids)
    wide = broken_data(data, root / "wide", put(0, "<2i", (20240801, 7)))
    for ranks in (1, 2):
        expect(DATA, ["train_000001.bin", "4-byte ids", "2-byte ids as in", "train_000000.bin"], ranks,
               base + ["--data", str(mixed)])
        expect(DATA, ["train_000000.bin", "byte 8"], ranks, base + ["--data", wide])


def check_paths_of_shards(root, data):
    """An empty shard, a link that leads nowhere, and a list of shards that leaves its folder."""
    base = TINY + ["--run-dir", str(root / "never"), "--steps", "3", "--batch-size-per-rank", "2"]
    hollow = broken_data(data, root / "hollow", lambda content: b"")
    astray = pathlib.Path(shutil.copytree(data, root / "astray"))
    (astray / "train_000001.bin").symlink_to(root / "nowhere.bin")
    outside = pathlib.Path(shutil.copytree(data, root / "outside"))
    info = json.loads((outside / "dataset.json").read_text())
    info["train"]["shards"][0]["file"] = "../../data/train_000000.bin"
    (outside / "dataset.json").write_text(json.dumps(info))
    for ranks in (1, 2):
        expect(DATA, ["train_000000.bin", "an empty"], ranks, base + ["--data", hollow])
        expect(DATA, ["train_000001.bin"], ranks, base + ["--data", str(astray)])
        expect(DATA, ["dataset.json", "../../data/train_000000.bin"], ranks, base + ["--data", str(outside)])
    check(not (root / "never").exists(), "a refused call left a run directory behind")


def check_short_validation(root, data):
    """Less than a sample cannot be evaluated; less than a batch can, and all ranks agree on the mean."""
    flags = TINY[:-2] + ["--steps", "2", "--eval-every", "1", "--lr-schedule", "constant"]
    folder = shutil.copytree(data, root / "short")
    info = json.loads((folder / "dataset.json").read_text())
    for tokens in (20, 32, 3 * 32 + 1):
        (folder / "val_000000.bin").write_bytes(
            struct.pack("<256i", 20240520, 1, tokens, *[0] * 253) + struct.pack(f"<{tokens}H", *[65] * tokens))
        info["val"]["shards"] = [{"file": "val_000000.bin", "tokens": tokens}]
        (folder / "dataset.json").write_text(json.dumps(info))
        for ranks in (1, 2):
            call = flags + ["--data", str(folder), "--batch-size-per-rank", str(8 // ranks)]
            if tokens < 33:
                expect(DATA, ["validation split", f"{tokens} tokens", "33", "--eval-every 0"], ranks,
                       call + ["--run-dir", str(root / "never")])
            else:
                train(ranks, root / f"short-{ranks}", call)
    one, two = ([line["val_loss"] for line in metrics(root / f"short-{ranks}")] for ranks in (1, 2))
    check(max(abs(a - b) for a, b in zip(one, two, strict=True)) < 1e-5, f"validation losses {one} and {two}")


def check_lost_shard(root, data):
    """Training around it in silence would be another training."""
    folder = shutil.copytree(data, root / "lost")
    info = json.loads((folder / "dataset.json").read_text())
    info["train"]["shards"].append({"file": "train_000001.bin", "tokens": 5})
    (folder / "dataset.json").write_text(json.dumps(info))
    for ranks in (1, 2):
        expect(DATA, ["train_000001.bin", "5 tokens, as dataset.json says", "found no file"], ranks,
               TINY + ["--steps", "2", "--data", str(folder), "--run-dir", str(root / "never")])


def change_header(file, change):
    """Rewrites the JSON header of a safetensors file."""
    content = file.read_bytes()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:end])
    change(header)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + content[end:])


def check_init(root, data):
    """Folders to start from that do not fit."""
    base = TINY + ["--data", str(data), "--steps", "3", "--batch-size-per-rank", "2"]
    train(1, root / "initial", TINY + ["--data", str(data), "--steps", "0"])
    initial = checkpoint(root / "initial", 0)

    def variant(name, change):
        folder = shutil.copytree(initial, root / name)
        change(folder)
        return folder

    def transpose(header):
        header["transformer.h.0.mlp.c_fc.weight"]["shape"].reverse()

    def rename(header):
        header["transformer.h.0.mlp.c_fc.weights"] = header.pop("transformer.h.0.mlp.c_fc.weight")

    def drop_layers(folder):
        text = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**text, "n_layer": 7, "n_embd": 48}))

    def flip(folder):
        weights = folder / "model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-1000] ^= 1
        weights.write_bytes(content)

    cases = [
        (["nowhere", "config.json"], root / "nowhere"),
        (["model.safetensors", "SHA-256"], variant("flipped", flip)),
        (["config.json", "not JSON"], variant("no-json", lambda f: (f / "config.json").write_text("{"))),
        (["model.safetensors"], variant("no-weights", lambda f: (f / "model.safetensors").unlink())),
        (["model.safetensors"], variant("cut", lambda f: (f / "model.safetensors").write_bytes(b"\x08"))),
        (["other: the weights are of another model", "layers: 7 there, 2 configured", "width: 48 there, 32 configured"], variant("other", drop_layers)),
    ]
    run(1, [BINARY, "generate", "--checkpoint", root / "flipped", "--prompt", "a"], CHECKPOINT)
    vast = variant("vast", lambda f: (f / "config.json").write_text(json.dumps({**json.loads((f / "config.json").read_text()), "n_layer": 10**9})))
    (vast / "manifest.json").unlink()  # a folder of somebody else, of which nothing vouches for the config
    check("config.json describes a model of" in run(1, [BINARY, "generate", "--checkpoint", vast, "--prompt", "a"], CHECKPOINT), "vast")
    few = variant("few", lambda f: (f / "config.json").write_text(json.dumps({**json.loads((f / "config.json").read_text()), "n_layer": 1})))
    (few / "manifest.json").unlink()
    check("n_layer: expected more than 1, for model.safetensors has the weights of block 1" in
          run(1, [BINARY, "generate", "--checkpoint", few, "--prompt", "a"], CHECKPOINT), "few")
    deep = variant("deep", lambda f: (f / "config.json").write_text(
        (f / "config.json").read_text().replace('"gelu_new"', "[" * 400_000 + "]" * 400_000)))
    (deep / "manifest.json").unlink()
    check("at most 32 nested levels" in run(1, [BINARY, "generate", "--checkpoint", deep, "--prompt", "a"], CHECKPOINT), "deep")
    for ranks in (1, 2):
        for words, folder in cases:
            expect(CHECKPOINT, words, ranks, base + ["--run-dir", str(root / "fresh"), "--init", str(folder)])
        check(not (root / "fresh").exists(), "a refused call left a run directory behind")
        for name, words, change in [("shape", ["h.0.mlp.c_fc.weight", "expected shape [", "found ["], transpose),
                                    ("name", ["h.0.mlp.c_fc.weight"], rename)]:
            folder = variant(f"{name}-{ranks}", lambda f: change_header(f / "model.safetensors", change))
            (folder / "manifest.json").unlink()  # as a folder of Hugging Face, which has no hashes
            expect(CHECKPOINT, words, ranks, base + ["--run-dir", str(root / f"run-{name}-{ranks}"), "--init", str(folder)])
        expect(CHECKPOINT, ["family: gpt2 there, mlp configured"], ranks,
               ["--model", "mlp", *base[2:], "--run-dir", str(root / "fresh"), "--init", str(initial)])


def tokenizer_of(size):
    """A byte-level BPE tokenizer of so many tokens, as Hugging Face writes it: all bytes, pairs of letters, the end of text."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]  # GPT-2's: these bytes stand for themselves, others from 256 up
    others = [256 + i for i in range(256 - len(plain))]
    letters = [chr(code) for code in plain + others]
    merges = [f"{a} {b}" for a in "abcdefghij" for b in "abcdefghij"][:size - 257]
    vocabulary = ["<|endoftext|>", *letters, *(merge.replace(" ", "") for merge in merges)]
    return {"version": "1.0", "added_tokens": [{"id": 0, "content": vocabulary[0], "single_word": False, "lstrip": False, "rstrip": False,
                                                "normalized": False, "special": True}],
            "normalizer": None, "post_processor": None, "decoder": {"type": "ByteLevel"},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(vocabulary)}, "merges": merges}}


def check_tokenizer(root, data):
    base = TINY + ["--data", str(data), "--steps", "1", "--run-dir", str(root / "untouched")]
    small = root / "small.json"
    small.write_text(json.dumps(tokenizer_of(300)))
    (root / "text.json").write_text("no tokenizer")
    for ranks in (1, 2):
        expect(DATA, ["nosuch"], ranks, base + ["--tokenizer", "nosuch"])
        expect(DATA, ["text.json"], ranks, base + ["--tokenizer", str(root / "text.json")])
        expect(DATA, ["small.json", "257", "300"], ranks, base + ["--tokenizer", str(small)])
    check(not (root / "untouched").exists(), "a refused tokenizer left a run directory behind")
    train(1, root / "untouched", base[:-2] + ["--tokenizer", "bytes"])


def check_only_damaged(root, data):
    """No checkpoint of the run can be used: it does not start over by itself, and nothing is lost."""
    run_dir = root / "only-damaged"
    base = TINY + ["--data", str(data), "--batch-size-per-rank", "2", "--run-dir", str(run_dir)]
    train(2, run_dir, base[:-2] + ["--steps", "3"])
    before = (run_dir / "metrics.jsonl").read_bytes()
    model = checkpoint(run_dir, 3) / "model.safetensors"
    os.truncate(model, 1000)
    expect(CHECKPOINT, ["none of the 1 checkpoints", "model.safetensors", "--run-dir"], 2, base + ["--steps", "5", "--resume", "auto"])
    check((run_dir / "metrics.jsonl").read_bytes() == before, "a refused resume changed metrics.jsonl")


def check_run_directory(root, data):
    base = TINY + ["--data", str(data), "--steps", "3", "--batch-size-per-rank", "2"]
    train(2, root / "used", base)
    expect(CONFIG, ["used", "--resume auto"], 2, base + ["--run-dir", str(root / "used")])
    (root / "file").write_text("not a folder")
    expect(CONFIG, ["file"], 2, base + ["--run-dir", str(root / "file")])
    fresh = ["--run-dir", str(root / "fresh")]
    expect(CHECKPOINT, ["config.json"], 2, base + fresh + ["--init", str(root / "nowhere")])
    expect(CONFIG, ["no usable GPU", "--device cpu"], 2, base + fresh + ["--backend", "nccl"])
    expect(CONFIG, ["rank 0 on ", "no usable GPU", "--device cpu"], 2, base + fresh + ["--device", "cuda"])
    expect(CONFIG, ["--precision tf32", "fp32 or bf16"], 2, base + fresh + ["--precision", "tf32"])
    expect(CONFIG, ["--precision fp16", "use bf16"], 2, base + fresh + ["--precision", "fp16"])
    expect(CONFIG, ["are for --precision fp16"], 2, base + fresh + ["--precision", "bf16", "--loss-scale", "dynamic"])
    expect(CONFIG, ["one process"], 2, base + fresh + ["--backend", "single"])
    check(not (root / "fresh").exists(), "a refused call left a run directory behind")
    other = ["--run-dir", str(root / "used"), "--resume", "auto", "--layers", "3"]
    expect(CHECKPOINT, ["layer", "3"], 2, base + other)
    model = checkpoint(root / "used", 3) / "model.safetensors"
    with open(model, "r+b") as file:  # one flipped bit in the only checkpoint
        file.seek(200)
        byte = file.read(1)
        file.seek(200)
        file.write(bytes([byte[0] ^ 1]))
    expect(CHECKPOINT, ["model.safetensors"], 2, base + ["--run-dir", str(root / "new"), "--resume", str(root / "used")])


def check_summary(root, data):
    (root / "file").write_text("no run")
    (root / "odd/metrics.jsonl").mkdir(parents=True)
    train(1, root / "run", TINY + ["--data", str(data), "--steps", "1"])
    shutil.copy(root / "run/run.json", root / "odd")
    (root / "none").mkdir()
    for code, folder, words in ((CONFIG, "nowhere", "expected the directory of a run, found none"), (CONFIG, "file", "found a file"),
                                (CONFIG, "none", "found one without run.json"), (DATA, "odd", "metrics.jsonl")):
        output = run(1, [BINARY, "summary", "--run", root / folder], code)
        check(words in output and folder in output, output)
    shutil.copytree(root / "run", root / "other/run")
    output = run(1, [BINARY, "summary", "--run", root / "run", root / "other/run"])
    check(f"{root / 'other/run'} against {root / 'run'}" in output, output)


def check_folder_that_has_gone(root, data):
    """LibTorch's MKL ends a process without a current folder before it begins."""
    for command in (f"{BINARY} --version", f"{ROOT}/launch/run -np 2 --build {BINARY.parent} -- train"):
        (root / "gone").mkdir()
        done = completed(["bash", "-c", f"cd {root}/gone && rmdir {root}/gone && exec {command}"], 60, environment())
        check(done.returncode == CONFIG and "has been removed: cd to one that is there" in done.stdout, f"{done.returncode}\n{done.stdout}")


def check_lost_launcher(root, data):
    env = dict(environment(), SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0", SLURM_LOCALID="0")
    done = completed([BINARY, "train", *TINY, "--data", data, "--run-dir", root / "never"], 60, env)
    check(done.returncode == CONFIG and "4" in done.stdout, f"several ranks of one: {done.returncode}\n{done.stdout}")


def build_id_of(binary):
    """As the linker wrote it, and where."""
    notes = subprocess.run(["readelf", "--notes", binary], capture_output=True, text=True, check=True).stdout
    digits = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
    return digits, pathlib.Path(binary).read_bytes().index(bytes.fromhex(digits))


def check_two_builds(root, data):
    """One rank of three runs another build: refused before anything is shared."""
    other = shutil.copy2(BINARY, root / "sidestream")
    mine, place = build_id_of(BINARY)
    with open(other, "r+b") as file:
        file.seek(place)
        file.write(bytes.fromhex("00112233"))
    command = ["train", *TINY, "--data", str(data), "--steps", "2", "--run-dir", str(root / "never")]
    words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "1", BINARY, *command, ":", "-np", "1", other, *command, ":", "-np", "1",
             BINARY, *command]
    message = only_message(run_command(words, CONFIG))
    check(re.search(rf"{mine} \(rank 0 on \S+, rank 2 on \S+\)", message)
          and re.search(rf"00112233{mine[8:]} \(rank 1 on \S+\)", message), message)
    check(not (root / "never").exists(), "a refused call left a run directory behind")


def each_with(common, *settings):
    """mpirun with a rank for each of these lists of flags."""
    words = ["mpirun", "--oversubscribe", "--bind-to", "none"]
    for i, flags in enumerate(settings):
        words += ([":"] if i > 0 else []) + ["-np", "1", BINARY, "train", *common, *flags]
    return [str(word) for word in words]


def check_other_settings(root, data):
    """One rank with another learning rate would train, and every replica would be another model."""
    common = [*TINY, "--data", str(data), "--steps", "2"]
    refused = [*common, "--run-dir", str(root / "never")]
    batch = "--batch-size-per-rank"
    for ranks, settings, words in (
            (2, (["--lr", "1e-4"], ["--lr", "1e-1"]), ["Rank 1", "lr = 1e-04 as on rank 0", "found lr = 0.1"]),
            (3, ([], [], ["--eval-tokens", "64"]), ["Rank 2", "eval-tokens"]),
            (2, ([], ["--drift-every", "1"]), ["Rank 1", "found drift-every = 1"]),
            (2, ([batch, "2"], [batch, "3"]), ["Rank 1", "batch-size-per-rank = 2 as on rank 0", "found batch-size-per-rank = 3"])):
        message = only_message(run_command(each_with(refused, *settings), CONFIG), words)
        check(all(word in message for word in words), f"{ranks} ranks, {words}: {message}")
    check(not (root / "never/config.cfg").exists(), "a refused call began a run")
    run_command(each_with([*common, batch, "2", "--run-dir", str(root / "uneven")], [], ["--loader-workers", "0", "--prefetch", "0"]))


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        side_by_side(root, [check_flags, check_no_room, check_data_folder, check_element_types, check_paths_of_shards,
                            check_short_validation, check_lost_shard, check_init, check_tokenizer, check_only_damaged,
                            check_run_directory, check_summary, check_folder_that_has_gone, check_lost_launcher, check_two_builds,
                            check_other_settings], data)


main()
