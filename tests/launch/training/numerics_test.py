"""A run that diverges stops on all ranks with one message and code 5, before a bad weight reaches a checkpoint."""

import pathlib

from support import TINY, check, make_data, metrics, train, workspace


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        output = train(2, root / "run", TINY + ["--data", str(data), "--steps", "50", "--batch-size-per-rank", "4", "--lr", "1000",
                                                "--grad-clip", "0", "--checkpoint-every", "1"], expect=5)
        messages = [line for line in output.splitlines() if "not finite" in line]
        check(len(messages) == 1, f"expected one message\n{output}")
        norms = [line["grad_norm"] for line in metrics(root / "run")]
        check(None not in norms, f"a step with a gradient that is not finite was taken: {norms}")


main()
