"""`sidestream-trace roofline` and the advice in `report`: roofline_command_test.py SIDESTREAM_TRACE"""
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/reference"))
from calls import call, check  # noqa: E402

PROGRAM = sys.argv[1]


def ncu(path, kernel):
    path.write_text('"ID","Kernel Name","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed",'
                    '"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"\n"","","nsecond","%","%"\n'
                    f'"0","{kernel}","20","10","90"\n')
    return path


with tempfile.TemporaryDirectory(prefix="sidestream-roofline-") as name:
    folder = pathlib.Path(name)
    traces = folder / "traces"
    call(sys.executable, ROOT / "tests/bench/trace/generate.py", "--ranks", 2, "--megabytes", 1, "--output", traces)

    text = call(PROGRAM, "roofline", traces)
    commands = [line for line in text.splitlines() if line.startswith("ncu --csv --page raw")]
    check(any("vectorized_layer_norm_kernel" in line for line in commands), text)
    check(not any("nccl" in line.split("regex:")[1].split("'")[0] for line in commands), "collectives under ncu wait for ever")

    call(PROGRAM, "roofline", traces, "--html", folder / "roofline.html")
    page = (folder / "roofline.html").read_text()
    check("ncu --csv --page raw" in page and '"sections":["top","import"]' in page, "no page of the roofline alone")

    call(PROGRAM, "report", traces, "--html", folder / "report.html", "--json", folder / "report.json", "--quiet")
    asked = json.loads((folder / "report.json").read_text())["counter_commands"]
    check(asked and all(one.startswith("ncu --csv --page raw") for one in asked), str(asked))
    check('"counter_commands":["ncu --csv' in (folder / "report.html").read_text(), "the page of the report lacks them")

    own = ncu(folder / "own.csv", "void at::native::vectorized_layer_norm_kernel<float, float>(int)")
    text = call(PROGRAM, "roofline", traces, "--ncu", own, "--json", folder / "r.json")
    check("memory-bound by its counters, 90 % of the peak" in " ".join(text.split()), text)
    operation = [one for one in json.loads((folder / "r.json").read_text())["top_ops"] if "layer_norm" in one["name"]][0]
    check(operation["roofline_bound"] == "memory" and operation["cause"], str(operation))
    check(operation["counters"]["memory_percent"] == 90 and operation["counters"]["dram_bytes"] is None, str(operation))

    call(PROGRAM, "report", traces, "--ncu", own, "--html", folder / "r.html", "--json", folder / "n.json", "--quiet")
    check('"memory_percent":90' in (folder / "r.html").read_text().replace(" ", ""), "the page has no counters")
    cut = folder / "cut.csv"
    cut.write_text(own.read_text()[:-8])
    check("the file was cut" in call(PROGRAM, "roofline", traces, "--ncu", cut, expect=3), "a cut file is taken")

    text = call(PROGRAM, "roofline", traces, "--ncu", ncu(folder / "other.csv", "other_program"), expect=3)
    check("other_program only: is it of another program?" in text, text)
    call(PROGRAM, "roofline", traces, "--ncu", traces / "rank-0.json", expect=3)

    call(PROGRAM, "report", traces, "--json", folder / "report.json", "--quiet")
    report = json.loads((folder / "report.json").read_text())
    check(any(one["rule"] == "input-no-workers" for one in report["not_measured"]), "rules that could not look are not named")
    print("passed")
