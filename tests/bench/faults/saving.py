"""How long a save of the 124M model holds training up: written while training goes on, against written at once."""
import re
import statistics
import tempfile

from trainings import text_of_s, train

SAVES = 2
# Steps between saves: beside training one takes longer, and the next would wait for it.
EVERY = {"on": 45, "off": 6}
SAVED = re.compile(r"saved checkpoint of step (\d+) \(training waited ([\d.]+) s of ([\d.]+) s\)")


def saves(args, mode):
    """[(seconds that training waited, seconds until the checkpoint had its name)] of one run; the first is made with cold memory."""
    every = EVERY[mode]
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        output = train(args, f"{folder}/run", ["--model", "gpt2-124m", "--sequence-length", 64, "--batch-size-per-rank", 1, "--steps",
                                               every * (SAVES + 1) - 1, "--checkpoint-every", every, "--keep-checkpoints", 1,
                                               "--async-checkpoints", mode])
    return [(float(waited), float(total)) for step, waited, total in SAVED.findall(output) if int(step) % every == 0]


def section(args):
    runs = {"on": [], "off": []}
    for repeat in range(args.repeats):
        for mode in ("off", "on") if repeat % 2 == 0 else ("on", "off"):
            runs[mode].append(saves(args, mode))
    lines = ["## A save of the 124M model (fp32 weights and moments of AdamW, 1.5 GB)", "",
             "| | training waits | until the checkpoint has its name |", "|---|---|---|"]
    warm = {mode: [one for run in of_mode for one in run[1:]] for mode, of_mode in runs.items()}
    for mode, title in {"off": "`--async-checkpoints off`", "on": "`--async-checkpoints on`"}.items():
        lines.append(f"| {title} | {text_of_s([waited for waited, _ in warm[mode]])} | {text_of_s([total for _, total in warm[mode]])} |")
        lines.append(f"| the first of a run | {text_of_s([run[0][0] for run in runs[mode]])} | {text_of_s([run[0][1] for run in runs[mode]])} |")
    ratio = statistics.median(waited for waited, _ in warm["on"]) / statistics.median(waited for waited, _ in warm["off"])
    first = statistics.median(run[0][0] for run in runs["on"]) / statistics.median(run[0][0] for run in runs["off"])
    return lines + ["", f"Training waits for {100 * ratio:.1f} % of the time that a save at once takes (first of a run: {100 * first:.1f} %)."]
