"""2, 3 and 4 ranks equal one rank on the joined batch; fused and unfused variants stay together."""

import pathlib

from support import TINY, check, losses, make_data, train, workspace


def distance(left, right):
    return max(abs(a - b) for a, b in zip(left, right, strict=True))


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        common = TINY + ["--data", str(data), "--steps", "20", "--lr", "1e-3"]
        train(1, root / "1", common + ["--batch-size-per-rank", "12"])
        expected = losses(root / "1")
        for ranks in (2, 3, 4):
            train(ranks, root / str(ranks), common + ["--batch-size-per-rank", str(12 // ranks)])
            apart = distance(losses(root / str(ranks)), expected)
            check(apart <= 1e-5, f"{ranks} ranks differ from one by {apart}")
        train(1, root / "accumulated", common + ["--batch-size-per-rank", "4", "--grad-accumulation", "3"])
        check(distance(losses(root / "accumulated"), expected) <= 1e-5, "accumulation differs from the larger batch")
        for name, flags in {"unfused optimizer": ["--fused-optimizer", "off"], "unfused operators": ["--fused-ops", "off"],
                            "baseline": ["--baseline"]}.items():
            run_dir = root / name.replace(" ", "-")
            train(2, run_dir, common + ["--batch-size-per-rank", "6", *flags])
            apart = distance(losses(run_dir), expected)
            check(apart <= 1e-5, f"{name} differs by {apart}")


main()
