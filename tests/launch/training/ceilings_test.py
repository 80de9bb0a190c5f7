"""`sidestream bench ceilings`: what it measures is printed and kept, the link between ranks beside it, and a training's MFU is of it."""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

from support import BINARY, check, run, running


def stored(cache):
    machine, = json.loads((cache / "sidestream/ceilings.json").read_text())["machines"].values()
    return machine


def main():
    with tempfile.TemporaryDirectory() as name:
        cache = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = name
        bench = [BINARY, "bench", "ceilings", "--seconds", "0.02"]

        early = run(2, bench)
        check("not kept: `sidestream bench ceilings` without mpirun comes first" in early, early)
        check(not (cache / "sidestream/ceilings.json").exists(), "a link alone was kept")

        if not os.path.exists("/dev/nvidiactl"):
            without = subprocess.run([*map(str, bench), "--device", "cuda"], capture_output=True, text=True, check=False)
            check(without.returncode == 2 and "--device cuda: there is no usable GPU" in without.stderr, f"{without}")
            check(not (cache / "sidestream/ceilings.json").exists(), "the processor was measured instead")

        output = run(1, bench)
        machine = stored(cache)
        for figure, label in (("fp32_flops_per_s", "matrix product fp32"), ("bf16_flops_per_s", "matrix product bf16"),
                              ("memory_bytes_per_s", "memory  ")):
            check(label in output and machine[figure] > 1e8, f"{figure}: {machine}\n{output}")
        check(machine["link_bytes_per_s"] == {}, str(machine))

        with contextlib.ExitStack() as others:
            for _ in os.sched_getaffinity(0):
                others.enter_context(running(["sh", "-c", "while :; do :; done"]))
            output = run(1, [BINARY, "bench", "ceilings", "--seconds", "0.3"])
        check("of the processors meanwhile: MFU may come out too high" in output, output)

        run(2, bench)
        check(list(stored(cache)["link_bytes_per_s"]) == ["2"] and stored(cache)["link_bytes_per_s"]["2"] > 1e7, str(stored(cache)))

        train = run(1, [BINARY, "train", "--model", "gpt2-tiny", "--data", "synthetic", "--steps", "3", "--log-every", "1",
                        "--sequence-length", "32", "--batch-size-per-rank", "2", "--run-dir", cache / "run"])
        steps = [json.loads(line) for line in (cache / "run/metrics.jsonl").read_text().splitlines()]
        check(all(0 < step["mfu"] < 1.5 for step in steps), train)


if __name__ == "__main__":
    main()
