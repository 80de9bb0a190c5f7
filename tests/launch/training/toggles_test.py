"""Every toggle that only changes how sums travel leaves the losses bit-identical on the ranks of a node."""

import pathlib

from support import TINY, check, losses, make_data, train, workspace

STEPS = ["--steps", "8", "--batch-size-per-rank", "4", "--grad-accumulation", "2", "--lr", "1e-3"]
VARIANTS = {
    "overlap off": ["--overlap", "off"],
    "bucketing off": ["--overlap", "off", "--bucketing", "off"],
    "small buckets": ["--bucket-mb", "0.05", "--first-bucket-mb", "0.01"],
    "one bucket": ["--bucket-mb", "1000"],
    "gradients copied into their bucket": ["--gradient-as-bucket-view", "off"],
    "no loader workers": ["--loader-workers", "0"],
    "deep prefetch": ["--loader-workers", "2", "--prefetch", "9"],
    "a copy of the state for each rank": ["--zero", "0"],
    "threads, pages and memory as the system has them": ["--pin-threads", "off", "--huge-pages", "off", "--keep-memory", "off"],
    "losses read at once": ["--late-loss", "off"],
    "layer ranges": ["--ranges", "layers"],
}


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        for precision in ("fp32", "bf16"):
            common = TINY + STEPS + ["--data", str(data), "--precision", precision]
            train(2, root / precision, common)
            expected = losses(root / precision)
            check(len(expected) == 8 and expected[-1] < expected[0], f"{precision}: the loss does not fall: {expected}")
            for name, flags in VARIANTS.items():
                run_dir = root / f"{precision} {name}".replace(" ", "-")
                train(2, run_dir, common + flags)
                check(losses(run_dir) == expected, f"{precision}, {name}: {losses(run_dir)} is not {expected}")
        # Plain MPI: two addends have one sum, so two ranks are bit-identical as well.
        train(2, root / "mpi", TINY + STEPS + ["--data", str(data), "--shared-memory", "off"])
        check(losses(root / "mpi") == losses(root / "fp32"), "shared memory off changes the losses of two ranks")


main()
