"""The table of measure.py, from its JSON."""

import json


def ratio_text(own, peer):
    return f"{own['tokens_per_s'] / peer['tokens_per_s']:.2f}" if own and peer else "?"


def row_of(name, own, peer):
    if own is None:
        return f"| {name} | not run | | | | | |"
    mfu = "?" if own["mfu"] is None else f"{100 * own['mfu']:.1f} %"
    return (f"| {name} | {own['tokens_per_s']:.0f} | {own['step_ms']:.1f} | {mfu} | {100 * own['data_share']:.2f} % | "
            f"{own['memory_bytes'] / 2**30:.1f} | {ratio_text(own, peer)} |")


def text(result):
    rows = [f"# One GPU\n\n{'; '.join(result['device'])}. {result['date']}. {result['model']}, B={result['batch']}, "
            f"T={result['sequence_length']}.\n",
            "| | tokens/s | step ms | MFU | data | GiB | against PyTorch eager of the same kind |",
            "|---|--:|--:|--:|--:|--:|--:|"]
    for name, one in result["speed"].items():
        rows.append(row_of(name, one["result"], result["peers"].get(one["peer"])))
    for name, peer in result["peers"].items():
        if peer is None:
            rows.append(f"| PyTorch {name} | not run | | | | | |")
        else:
            rows.append(f"| PyTorch {name} | {peer['tokens_per_s']:.0f} | {peer['step_ms']:.1f} | | | "
                        f"{peer['memory_bytes'] / 2**30:.1f} | 1 |")
    checks = [f"- {key}: {json.dumps(result[key])}" for key in ("tests", "failed", "left_out")]
    return "\n".join(rows) + "\n\n" + "\n".join(checks) + "\n\n```\n" + "\n".join(result["build"]) + "\n```\n"
