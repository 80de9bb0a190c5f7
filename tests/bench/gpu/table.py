"""The tables of measure.py, from its JSON."""
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import models  # noqa: E402
from spread import interval, ratios  # noqa: E402

COLUMNS = ("| side | B | tokens/s | step, ms | mfu | waits for data | GiB | ratio |\n"
           "|---|--:|--:|--:|--:|--:|--:|---|")


def samples_by_case(row):
    cases = {}
    for sample in row["samples"]:
        cases.setdefault((sample["side"], sample["batch"]), []).append(sample)
    return cases


def speeds(samples):
    return [sample["tokens_per_s"] for sample in samples]


def best_batch(cases, side):
    """Of the batches that were measured; None where there is none."""
    of_side = {batch: statistics.median(speeds(samples)) for (name, batch), samples in cases.items() if name == side}
    return max(of_side, key=of_side.get, default=None)


def comparisons(cases, side, batch):
    """Ratios at this batch; where it is the side's best, of the peers' best too."""
    for peer in side["against"]:
        best = best_batch(cases, peer)
        pairs = [(batch, f"of {peer}")] if (peer, batch) in cases else []
        if batch == best_batch(cases, side["name"]) and best not in (None, batch):
            pairs.append((best, f"of {peer} at its B = {best}"))
        for other, what in pairs:
            yield f"{interval(ratios(speeds(cases[side['name'], batch]), speeds(cases[peer, other])), unit='x')} {what}"


def optional(samples, figure, form, factor=1.0, unit=""):
    values = [sample.get(figure) for sample in samples]
    return "" if None in values else interval([factor * value for value in values], form, unit)


def mfu_text(row, side, samples, device):
    shares = [models.mfu(row["model"], row["length"], speed, device) for speed in speeds(samples)]
    narrow = side["kind"] == "llm.c" or not {"bf16", "fp16"}.isdisjoint(side["flags"])
    return interval([100 * share for share in shares], "{:.1f}", " %") if narrow and None not in shares else "-"


def case_line(row, cases, side, batch, device):
    samples = cases[side["name"], batch]
    cells = [side["name"], str(batch), interval(speeds(samples), "{:.0f}"), optional(samples, "step_ms", "{:.1f}"),
             mfu_text(row, side, samples, device), optional(samples, "data_share", "{:.2f}", 100, " %"),
             optional(samples[-1:], "memory_bytes", "{:.1f}", 2**-30), "; ".join(comparisons(cases, side, batch))]
    return f"| {' | '.join(cells)} |"


def comparison_text(row, device):
    cases = samples_by_case(row)
    lines = [f"{row['model']}, T = {row['length']}." + (f" Aim: {row['wanted']}." if row["wanted"] else ""), "", COLUMNS]
    for side in row["sides"]:
        lines += [case_line(row, cases, side, batch, device) for name, batch in sorted(cases) if name == side["name"]]
    return lines


def gb_per_s(rates):
    return interval([rate * 1e-9 for rate in rates], "{:.0f}")


def percent(rates, of):
    return interval([100 * share for share in ratios(rates, of)], "{:.0f}", " %")


def optimizer_line(row, moments, specified):
    rounds = [one[moments] for one in row["rounds"]]
    copies = [one["copy_bytes_per_s"] for one in row["rounds"]]
    rates = [one["bytes_per_s"] for one in rounds]
    cells = [moments, interval(one["update_ms"] for one in rounds), gb_per_s(rates), percent(rates, copies),
             percent(rates, [specified] * len(rates)) if specified else "-",
             percent([one["with_norm_bytes_per_s"] for one in rounds], copies)]
    return f"| {' | '.join(cells)} |"


def optimizer_text(row, device):
    specified = models.of_device(models.MEMORY_BYTES_PER_S, device)
    copies = gb_per_s([one["copy_bytes_per_s"] for one in row["rounds"]])
    return [f"A copy on the device: {copies} GB/s, read and written. Aim: at least 85 %.", "",
            "| moments | update, ms | GB/s | of the copy | of the datasheet | with the norm, of the copy |", "|---|--:|--:|--:|--:|--:|",
            *(optimizer_line(row, moments, specified) for moments in ("fp32", "bf16"))]


def suites_text(row):
    passed = sum(status == "Passed" for status in row["statuses"].values())
    return [f"{passed} of {len(row['statuses'])} passed."]


def days_of(row):
    days = sorted({one["date"] for one in (*row.get("samples", []), *row.get("rounds", [])) if "date" in one})
    return [" to ".join(days[:1] + days[1:][-1:]), ""] if days else []


def commands_of(row):
    given = [f"`{options}`" if options else "none" for options in row.get("options", [])]
    return [f"Options: {', then '.join(given)}.", ""] if given else []


def row_text(name, row, device):
    lines = [f"## {name}", "", *days_of(row), *commands_of(row)]
    if row.get("samples"):
        lines += comparison_text(row, device)
    if row.get("rounds"):
        lines += optimizer_text(row, device)
    if row.get("statuses"):
        lines += suites_text(row)
    failed = [f"- {side} failed: {text.strip().splitlines()[-1]}" for side, text in row.get("failed", {}).items()]
    missing = [f"- not measured: {row['left_out']}"] if row.get("left_out") else []
    return [*lines, "", *failed, *missing, ""]


def text(found):
    device = found["device"]
    lines = [f"# One GPU: {device['name']}", "",
             "Medians of interleaved repeats, in brackets the least and the most; without brackets one run. mfu: (6 N + "
             "6 L C T) tokens/s over the datasheet's bf16 peak. What was built is that of the last row that was measured.", "",
             "Command: `build/env/bin/python tests/bench/gpu/measure.py`. With which options a row was measured is below its title; "
             "until 2026-11-28 they were not kept.", ""]
    for name, row in found["rows"].items():
        lines += row_text(name, row, device["name"])
    return "\n".join([*lines, "```", *device["details"], "```"]) + "\n"
