"""Bad input before training: one message that names what is wrong, the documented exit code, on two ranks, no hang."""

import pathlib
import shutil
import struct
import subprocess

from support import BINARY, TINY, check, checkpoint, environment, expect, make_data, train, workspace

CONFIG, DATA, CHECKPOINT = 2, 3, 4


def broken_data(good, folder, change):
    shutil.copytree(good, folder)
    shard = folder / "train_000000.bin"
    content = bytearray(shard.read_bytes())
    shard.write_bytes(change(content))
    return str(folder)


def put(offset, layout, value):
    def change(content):
        struct.pack_into(layout, content, offset, value)
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
        (CONFIG, ["nothing.cfg"], ["--config", str(root / "nothing.cfg")]),
    ]:
        expect(code, words, 2, flags + more)
    for text, words in [("no-such-key = 1\n", ["bad.cfg:1", "no-such-key"]), ("lr = 1\nlr = 2\n", ["bad.cfg:2", "lr"]),
                        ("lr = fast\n", ["bad.cfg:1", "lr", "fast"])]:
        config.write_text(text)
        expect(CONFIG, words, 2, flags + ["--config", str(config)])
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


def check_run_directory(root, data):
    base = TINY + ["--data", str(data), "--steps", "3", "--batch-size-per-rank", "2"]
    train(2, root / "used", base)
    expect(CONFIG, ["used", "--resume auto"], 2, base + ["--run-dir", str(root / "used")])
    (root / "file").write_text("not a folder")
    expect(CONFIG, ["file"], 2, base + ["--run-dir", str(root / "file")])
    fresh = ["--run-dir", str(root / "fresh")]
    expect(CHECKPOINT, ["config.json"], 2, base + fresh + ["--init", str(root / "nowhere")])
    expect(CONFIG, ["NCCL"], 2, base + fresh + ["--backend", "nccl"])
    expect(CONFIG, ["one process"], 2, base + fresh + ["--backend", "single"])
    check(not (root / "fresh").exists(), "a refused call left a run directory behind")
    other = ["--run-dir", str(root / "used"), "--resume", "auto", "--layers", "3"]
    expect(CHECKPOINT, ["layer", "3"], 2, base + other)
    model = checkpoint(root / "used", 3) / "model.safetensors"
    with open(model, "r+b") as file:  # one flipped bit: the only checkpoint is skipped and training starts afresh
        file.seek(200)
        byte = file.read(1)
        file.seek(200)
        file.write(bytes([byte[0] ^ 1]))
    expect(CHECKPOINT, ["model.safetensors"], 2, base + ["--run-dir", str(root / "new"), "--resume", str(root / "used")])


def check_lost_launcher(root, data):
    env = dict(environment(), SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0", SLURM_LOCALID="0")
    done = subprocess.run([str(BINARY), "train", *TINY, "--data", str(data), "--run-dir", str(root / "never")], env=env,
                          text=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == CONFIG and "4" in done.stdout, f"several ranks of one: {done.returncode}\n{done.stdout}")


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        check_flags(root, data)
        check_data_folder(root, data)
        check_run_directory(root, data)
        check_lost_launcher(root, data)


main()
