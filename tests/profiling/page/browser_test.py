"""The page in a browser without a screen: browser_test.py BROWSER SIDESTREAM_TRACE

Copies of the page get a script that clicks like a person and writes what came of it into the document.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/reference"))
from calls import call, check, completed  # noqa: E402

BROWSER, PROGRAM = sys.argv[1], sys.argv[2]
SECTIONS = ["overview", "advice", "verification", "timeline", "top", "operators", "kernels", "memory", "modules", "collectives",
            "stragglers", "data", "events", "import"]
LARGEST_BYTES = 8_000_000
SLOWEST_MS = 2000

CLICKS = """
const found = {};
const rows = id => [...document.querySelector(`#${id} table`).querySelectorAll("tbody tr")].map(row => row.cells[0].textContent);
const canvas = document.querySelector("#timeline canvas");
if (canvas) {
  const box = canvas.getBoundingClientRect(), lane = Page.timeline.lanes[0];
  const press = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {clientX: x, clientY: y, pointerId: 1, bubbles: true}));
  canvas.setPointerCapture = () => {};
  const event = lane.lane.events, at = Page.timeline.x(event[0] + event[1] / 2);
  Page.timeline.show({start: event[0] - event[1], end: event[0] + 3 * event[1]});
  const x = box.left + Page.timeline.x(event[0] + event[1] / 2), y = box.top + lane.top + 5;
  press("pointerdown", x, y); press("pointerup", x, y);
  found.detail = document.querySelector("#timeline .detail").textContent;
  found.name = Page.timeline.timeline.names[event[2]];
  const span = Page.timeline.to - Page.timeline.from;
  canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: x, clientY: y, cancelable: true}));
  found.zoomed = Page.timeline.to - Page.timeline.from < span;
  const from = Page.timeline.from;
  press("pointerdown", x, y); press("pointermove", x - 80, y); press("pointerup", x - 80, y);
  found.moved = Page.timeline.from > from;
}
const header = document.querySelector("#operators th");
if (header) {
  header.click(); found.up = rows("operators");
  header.click(); found.down = rows("operators");
  const search = document.querySelector("#operators input");
  if (search) { search.value = "gelu"; search.dispatchEvent(new Event("input")); found.filtered = rows("operators"); }
}
const themes = [document.documentElement.dataset.theme];
document.getElementById("theme").click(); themes.push(document.documentElement.dataset.theme);
const select = document.getElementById("run");
if (select) { select.value = "0"; select.dispatchEvent(new Event("change")); found.run = Page.run; }
found.themes = themes;
found.sections = [...document.querySelectorAll("main section")].map(one => one.id);
found.broken = [...document.querySelectorAll("main .bad")].map(one => one.textContent).filter(text => text.includes("could not be drawn"));
found.story = [...document.querySelectorAll("#verification h3")].map(one => one.textContent);
found.links = [...document.querySelectorAll("nav a")].length;
found.empty = [...document.querySelectorAll("nav a.empty")].map(one => one.getAttribute("href").slice(1));
found.canvases = Object.fromEntries([...document.querySelectorAll("main section")].map(one => [one.id, one.querySelectorAll("canvas").length]));
const squares = [...document.querySelectorAll("#stragglers .heat > div")], heads = squares.filter(one => one.classList.contains("head"));
found.heat = {cells: squares.length - heads.length, heads: heads.length};
found.cards = document.querySelectorAll("#advice .advice").length;
found.counters = [...document.querySelectorAll("#top th")].map(one => one.textContent);
found.text = Object.fromEntries(["overview", "advice", "verification", "top"].map(id => [id, document.getElementById(id) ? document.getElementById(id).textContent : ""]));
document.body.dataset.found = JSON.stringify(found);
"""


def browser(*words):
    """A call of it, in a folder that goes with all that it leaves behind."""
    with tempfile.TemporaryDirectory(prefix="sidestream-browser-", ignore_cleanup_errors=True) as scratch:
        return completed([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch}/profile", *words], 120,
                         os.environ | {"TMPDIR": scratch}, stderr=subprocess.PIPE)


def browse(page, first=None, sections=SECTIONS):
    """(what the clicks found, milliseconds until the page could be used); fails for any message on the console."""
    copy = page.with_suffix(".test.html")
    copy.write_text(page.read_text().replace("</body>", f"<script>{CLICKS}</script></body>"))
    done = browser("--window-size=1400,1000", "--enable-logging=stderr", "--dump-dom", f"file://{copy}")
    # The browser's own pages complain about slow machines.
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "source: chrome://" not in line]
    check(not console, f"{page.name}: messages on the console: {console}")
    match = re.search(r'data-found="([^"]*)"', done.stdout)
    check(match, f"{page.name}: the page did not run to its end: {done.stdout[-500:]} {done.stderr[-500:]}")
    found = json.loads(match.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    expected = sections if first is None else [first, *(one for one in sections if one != first)]
    check(found["sections"] == expected, f"{page.name}: sections {found['sections']}")
    check(found["links"] == len(sections), f"{page.name}: {found['links']} links")
    check(found["broken"] == [], f"{page.name}: {found['broken']}")
    check(sorted(found["themes"]) == ["dark", "light"], f"{page.name}: themes {found['themes']}")
    return found, int(re.search(r'data-ready-ms="(\d+)"', done.stdout).group(1))


def test_eight_ranks(folder):
    traces, page = folder / "traces", folder / "eight.html"
    call(sys.executable, ROOT / "tests/bench/trace/generate.py", "--ranks", 8, "--megabytes", 12, "--output", traces)
    call(PROGRAM, "report", traces, "--html", page, "--json", folder / "eight.json", "--quiet")
    steps = [(one["rank"], one["step"]) for one in json.loads((folder / "eight.json").read_text())["steps"]]
    check(sorted(steps) == [(rank, step) for rank in range(8) for step in range(1, 11)], f"not 8 ranks x 10 steps: {steps}")
    check(page.stat().st_size < LARGEST_BYTES, f"the page has {page.stat().st_size} bytes")
    runs = [browse(page) for _ in range(2)]
    found, fastest_ms = runs[0][0], min(ms for _, ms in runs)
    check(not {"overview", "timeline", "top", "operators", "kernels", "collectives", "events", "import"} & set(found["empty"]),
          f"empty: {found['empty']}")
    check(fastest_ms < SLOWEST_MS, f"usable after {fastest_ms} ms")
    check(found["name"] in found["detail"] and "rank 0" in found["detail"], f"a click shows {found['detail']}")
    check(found["zoomed"] and found["moved"], f"zoom {found['zoomed']}, moved {found['moved']}")
    check(found["up"] == sorted(found["up"], key=str.lower), f"sorted: {found['up']}")
    check(found["down"] == found["up"][::-1], f"sorted the other way: {found['down']}")
    check(found["filtered"] and all("gelu" in name for name in found["filtered"]), f"filtered: {found['filtered']}")
    check(found["heat"] == {"cells": 8 * 10, "heads": 1 + 8 + 10}, f"the heat map of 8 ranks x 10 steps has {found['heat']}")
    call(PROGRAM, "roofline", traces, "--html", folder / "roofline.html")
    browse(folder / "roofline.html", sections=["top", "import"])
    check((folder / "roofline.html").stat().st_size < page.stat().st_size / 2, "the roofline's page holds the timeline")
    print(f"eight ranks: {page.stat().st_size / 1e6:.2f} MB, usable after {fastest_ms} ms")


def test_every_section_is_drawn_where_its_data_is(folder):
    """Which sections stay empty, by what was recorded; what the others must show."""
    def page_of(name, trace, *words):
        call(PROGRAM, "report", ROOT / "tests/data/traces" / trace, "--html", folder / f"{name}.html", "--quiet", *words)
        return browse(folder / f"{name}.html")[0]

    profiled = page_of("profiled", "trainer_cpu_2ranks")
    check(profiled["empty"] == ["verification", "kernels"], f"empty: {profiled['empty']}")
    drawn = {name: count for name, count in profiled["canvases"].items() if count > 0}
    check(drawn == {"overview": 1, "timeline": 1, "top": 2, "memory": 1, "collectives": 3}, f"charts: {drawn}")
    check({"flops per s", "bytes per s"} <= set(profiled["counters"]), str(profiled["counters"]))
    check(profiled["text"]["overview"].count("not sure") == 1, profiled["text"]["overview"])
    fault = page_of("fault", "faults/one_slow_rank")
    check(fault["empty"] == ["verification", "kernels", "memory"], f"empty: {fault['empty']}")
    check(fault["cards"] > 0 and "Looked, and found nothing" in fault["text"]["advice"], fault["text"]["advice"])
    check("rank 1 is late in forward" in fault["text"]["overview"], fault["text"]["overview"])
    alone = page_of("alone", "torch_cpu")
    check({"kernels", "collectives", "stragglers"} <= set(alone["empty"]), f"empty: {alone['empty']}")


def test_a_late_rank_of_the_new_side_comes_first(folder):
    faults, page = ROOT / "tests/data/traces/faults", folder / "late.html"
    call(PROGRAM, "compare", faults / "healthy_every_rank_keeps_all", faults / "one_slow_rank", "--force", "--html", page)
    text = browse(page, first="verification")[0]["text"]["verification"]
    late, bound = text.find("On the new side: rank 1 is late"), text.find("is bound by")
    check(0 < late < bound, text)


def test_paper_is_several_sheets(folder):
    page, paper = folder / "torch.html", folder / "torch.pdf"
    call(PROGRAM, "report", ROOT / "tests/data/traces/torch_cpu", "--html", page, "--quiet")
    done = browser(f"--print-to-pdf={paper}", f"file://{page}")
    check(done.returncode == 0, f"no paper: {done}")
    content = paper.read_bytes()
    sheets = len(re.findall(rb"/Type\s*/Page\b", content))
    check(content.startswith(b"%PDF") and sheets >= 3, f"{sheets} sheets, {len(content)} bytes")


def write_run(folder, traces, step_s, exposed_ms, overlap):
    """A run directory as the trainer leaves it."""
    (folder / "trace/step_00000002").mkdir(parents=True)
    for source in sorted(traces.iterdir()):
        (folder / "trace/step_00000002" / source.name).write_bytes(source.read_bytes())
    (folder / "config.cfg").write_text(f"model = gpt2-mini\nseed = 1\noverlap = {overlap}\n")
    (folder / "run.json").write_text(json.dumps({
        "schema": 1, "version": "0", "build": "b", "machine": {"processor": "p", "nodes": 1}, "command_line": "train", "world_size": 2,
        "threads_per_rank": 1, "backend": "mpi", "precision": "fp32", "parameters": 1, "exit_code": 0,
        "performance": {"steps": 5, "step_ms_p50": step_s * 1e3, "tokens_per_s": 1, "exposed_comm_ms_p50": exposed_ms, "reader_cost_ms_p50": 1}}))
    lines = [{"step": step, "loss": 5 / step, "batch_cost_s": step_s, "reader_cost_s": 0.001, "memory_bytes": 1000, "tokens_per_s": 10}
             for step in range(1, 12)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_before_and_after(folder):
    traces, page = folder / "two", folder / "ab.html"
    call(sys.executable, ROOT / "tests/bench/trace/generate.py", "--ranks", 2, "--megabytes", 1, "--output", traces)
    for name, step_s, exposed_ms, overlap in [("a1", 0.10, 9, "off"), ("a2", 0.101, 9, "off"), ("b1", 0.08, 2, "on"), ("b2", 0.081, 2, "on")]:
        write_run(folder / name, traces, step_s, exposed_ms, overlap)
    words = ["compare", "--base", folder / "a1", folder / "a2", "--new", folder / "b1", folder / "b2"]
    output = call(PROGRAM, *words, "--html", page, "--json", folder / "ab.json", "--fail-if-slower", 1)
    check("faster" in output and "exposed communication" in output, output)
    result = json.loads((folder / "ab.json").read_text())
    check(result["verification"]["step_time"]["verdict"] == "faster", str(result["verification"]["step_time"]))
    parts = result["trace"]["parts"]
    check(abs(sum(part["change_ms"] for part in parts)) < 1e-9, "equal traces differ")
    profiles = result["verification"]["profiles"]
    check(profiles["base"]["step_ms"] == profiles["new"]["step_ms"] > 0 and profiles["base"]["top_ops"], f"profiles {profiles}")
    operations = result["trace"]["operations"]
    check(abs(sum(part["base_ms"] for part in operations) - profiles["base"]["step_ms"]) < 1e-6, "operations do not add up to the step")
    found, _ = browse(page, first="verification")
    check("speed-up (by pairs, 95 %" in found["text"]["verification"], found["text"]["verification"])
    check("base step (median of the blocks" in found["text"]["verification"], found["text"]["verification"])
    check(found["run"] == 0, "the other run is not shown")
    for title in ("What was slow", "What was advised for the base", "What changed", "The proof", "By operation, the largest changes",
                  "What is advised for the new side"):
        check(title in found["story"], f"{title} is not in the section: {found['story']}")
    output = call(PROGRAM, "compare", folder / "b1", folder / "a1", "--fail-if-slower", 1, "--quiet", expect=12)
    check("one block has no interval" in output and output.count("\n") == 1, output)
    (folder / "a1/config.cfg").write_text("model = gpt2-124m\nseed = 1\n")
    output = call(PROGRAM, "compare", folder / "a1", folder / "b1", expect=2)
    check("model is gpt2-124m and gpt2-mini" in output, output)
    call(PROGRAM, "compare", folder / "a1", folder / "b1", "--force")
    output = call(PROGRAM, "compare", folder / "a2", traces)  # one side without a record: by the traces
    check("inconclusive" in output and "no metrics.jsonl" in output, output)


def main():
    for test in (test_eight_ranks, test_every_section_is_drawn_where_its_data_is, test_paper_is_several_sheets,
                 test_a_late_rank_of_the_new_side_comes_first, test_before_and_after):
        with tempfile.TemporaryDirectory(prefix="sidestream-page-") as name:
            test(pathlib.Path(name))
        print("passed", test.__name__, flush=True)


if __name__ == "__main__":
    main()
