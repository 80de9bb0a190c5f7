"""2, 3 and 4 ranks equal one rank on the joined batch; fused and unfused variants stay together."""

import pathlib

from support import TINY, check_near, make_data, train, workspace


def check_steps_of_gradients(root, common):
    """SGD without clipping goes as far as its gradients are long: they are means over ranks and micro-steps, also where they are used."""
    flags = common + ["--algorithm", "sgd", "--grad-clip", "0", "--lr", "0.05"]
    train(1, root / "sgd-1", flags + ["--batch-size-per-rank", "12"])
    for name, more in {"sgd-fused": [], "sgd-unfused": ["--fused-optimizer", "off"]}.items():
        train(2, root / name, flags + ["--batch-size-per-rank", "2", "--grad-accumulation", "3", *more])
        check_near(name, root / name, root / "sgd-1", 1e-5)


def main():
    with workspace() as folder:
        root = pathlib.Path(folder)
        data = make_data(root / "data")
        common = TINY + ["--data", str(data), "--steps", "20"]
        check_steps_of_gradients(root, common)
        common += ["--lr", "1e-3"]
        train(1, root / "1", common + ["--batch-size-per-rank", "12"])
        for ranks in (2, 3, 4):
            train(ranks, root / str(ranks), common + ["--batch-size-per-rank", str(12 // ranks)])
            check_near(f"{ranks} ranks and one", root / str(ranks), root / "1", 1e-5)
        train(1, root / "accumulated", common + ["--batch-size-per-rank", "4", "--grad-accumulation", "3"])
        check_near("accumulation and the larger batch", root / "accumulated", root / "1", 1e-5)
        for name, flags in {"unfused optimizer": ["--fused-optimizer", "off"], "unfused operators": ["--fused-ops", "off"],
                            "baseline": ["--baseline"]}.items():
            run_dir = root / name.replace(" ", "-")
            train(2, run_dir, common + ["--batch-size-per-rank", "6", *flags])
            check_near(name, run_dir, root / "1", 1e-5)


main()
