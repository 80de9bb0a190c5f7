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
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "n", cancelable: true}));
  found.next = Page.timeline.chosen.index;
  const {frame} = Page.timeline, last = Page.timeline.lanes.at(-1), [start, length] = last.lane.events;
  found.height = {canvas: canvas.height, shown: frame.clientHeight, all: frame.scrollHeight};
  Page.timeline.show({start, end: start + length});
  frame.scrollTop = frame.scrollHeight;
  const [middle, below] = [box.left + Page.timeline.x(start + length / 2), box.top + last.top - frame.scrollTop + 5];
  press("pointerdown", middle, below); press("pointerup", middle, below);
  found.last = document.querySelector("#timeline .detail").textContent;
}
const header = document.querySelector("#operators th");
if (header) {
  header.click(); found.up = rows("operators");
  header.click(); found.down = rows("operators");
  const search = document.querySelector("#operators input");
  if (search) { search.value = "gelu"; search.dispatchEvent(new Event("input")); found.filtered = rows("operators"); }
}
const labels = () => [...document.querySelectorAll("#timeline .tools label")];
const boxes = () => labels().map(one => [one.textContent.trim(), one.querySelector("input").checked]);
for (const one of labels()) if (one.textContent.includes("system samples")) one.click();
const view = ({from, to, chosen, frame, hidden}) => [from, to, chosen && chosen.index, frame.scrollTop, [...hidden].sort(), boxes()];
const kept = () => JSON.stringify([Page.timeline && view(Page.timeline), header && rows("operators"),
  [...document.querySelectorAll("#operators th")].map(one => one.getAttribute("aria-sort"))]);
found.kept = [kept()];
found.boxes = boxes();
const themes = [document.documentElement.dataset.theme];
document.getElementById("theme").click(); themes.push(document.documentElement.dataset.theme);
found.kept.push(kept());
window.dispatchEvent(new Event("beforeprint"));
const onPaper = id => (document.querySelector(`#${id} .printed`) || {}).textContent;
found.paper = {timeline: onPaper("timeline"), events: onPaper("events")};
window.dispatchEvent(new Event("afterprint"));
found.kept.push(kept());
found.nameless = [...document.querySelectorAll("canvas")].filter(one => !one.getAttribute("aria-label")).length;
found.sortable = [...document.querySelectorAll("main th")].every(one => one.querySelector("button"));
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
const told = ["overview", "advice", "verification", "top", "collectives", "stragglers"];
found.text = Object.fromEntries(told.map(id => [id, document.getElementById(id) ? document.getElementById(id).textContent : ""]));
document.body.dataset.found = JSON.stringify(found);
"""

# What takes longer traces than a test has.
PIECES = """
const pieces = {};
const crossing = {events: [0, 10, 0, 5, 10, 0, 12, 10, 0, 16, 5, 0]};
Timeline.prototype.prepare.call({timeline: {ranks: [{lanes: [crossing]}]}});
pieces.depth = [...crossing.depth];
const two = {curves: [{top: 0, lane: {points: [0, 5, 100, 6, 1000, 7, 1100, 8], starts: [0, 2]}}]};
pieces.samples = [50, 500, 1050].map(time => (Timeline.prototype.sampleAt.call(two, time, 1, 2) || {}).sample ?? null);
const late = {kind: "compute", longest: 100, events: [0, 100, 0, 150, 5, 1, 160, 5, 2, 195, 10, 3, 300, 5, 4]};
pieces.stepped = [90, 120, 190, 1000].map(from => {
  const one = Object.assign(Object.create(Timeline.prototype), {from, to: from + 50, chosen: null, hidden: new Set(), frame: {scrollTop: 0},
    lanes: [{lane: late, rank: {}, top: 0}], choose(chosen) { this.chosen = chosen; }});
  one.step(1);
  return one.chosen.index;
});
const hidden = withoutEmptyColumns({header: ["name", "exposed_ns", "wait_ns"], rows: [["a", 0, 0]]});
pieces.columns = [hidden.header, hidden.empty];
Page.data.runs = [{report: {steps: [{start_ns: 5}]}}];
Page.run = 0;
pieces.place = placeOf({start_ns: 6, end_ns: 7, place_rank: 0, stream: null});
document.body.dataset.found = JSON.stringify(pieces);
"""


def browser(*words):
    """A call of it, in a folder that goes with all that it leaves behind."""
    with tempfile.TemporaryDirectory(prefix="sidestream-browser-", ignore_cleanup_errors=True) as scratch:
        return completed([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch}/profile", *words], 120,
                         os.environ | {"TMPDIR": scratch}, stderr=subprocess.PIPE)


def found_by(script, page):
    """(what the script left in the document, all of the document); fails for any message on the console."""
    copy = page.with_suffix(".test.html")
    copy.write_text(page.read_text().replace("</body>", f"<script>{script}</script></body>"))
    done = browser("--window-size=1400,1000", "--enable-logging=stderr", "--dump-dom", f"file://{copy}")
    # The browser's own pages complain about slow machines.
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "source: chrome://" not in line]
    check(not console, f"{page.name}: messages on the console: {console}")
    match = re.search(r'data-found="([^"]*)"', done.stdout)
    check(match, f"{page.name}: the page did not run to its end: {done.stdout[-500:]} {done.stderr[-500:]}")
    return json.loads(match.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")), done.stdout


def browse(page, first=None, sections=SECTIONS):
    """(what the clicks found, milliseconds until the page could be used)."""
    found, document = found_by(CLICKS, page)
    expected = sections if first is None else [first, *(one for one in sections if one != first)]
    check(found["sections"] == expected, f"{page.name}: sections {found['sections']}")
    check(found["links"] == len(sections), f"{page.name}: {found['links']} links")
    check(found["broken"] == [], f"{page.name}: {found['broken']}")
    check(sorted(found["themes"]) == ["dark", "light"], f"{page.name}: themes {found['themes']}")
    check(found["nameless"] == 0, f"{page.name}: {found['nameless']} charts without a name")
    check(found["sortable"], f"{page.name}: a head of a column is no button")
    check(len(set(found["kept"])) == 1, f"{page.name}: sorting, filter, zoom and boxes with another theme and on paper: {found['kept']}")
    return found, int(re.search(r'data-ready-ms="(\d+)"', document).group(1))


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
    check(found["next"] == 1, f"the key n leads to event {found['next']}")
    check(found["paper"]["events"].startswith("12 of "), f"on paper: {found['paper']}")
    check("of the whole trace" in found["text"]["collectives"], found["text"]["collectives"])
    check(found["up"] == sorted(found["up"], key=str.lower), f"sorted: {found['up']}")
    check(found["down"] == found["up"][::-1], f"sorted the other way: {found['down']}")
    check(found["filtered"] and all("gelu" in name for name in found["filtered"]), f"filtered: {found['filtered']}")
    check(found["heat"] == {"cells": 8 * 10, "heads": 1 + 8 + 10}, f"the heat map of 8 ranks x 10 steps has {found['heat']}")
    call(PROGRAM, "roofline", traces, "--html", folder / "roofline.html")
    browse(folder / "roofline.html", sections=["top", "import"])
    check((folder / "roofline.html").stat().st_size < page.stat().st_size / 2, "the roofline's page holds the timeline")
    print(f"eight ranks: {page.stat().st_size / 1e6:.2f} MB, usable after {fastest_ms} ms")


def write_traces(folder, ranks, steps):
    """Host ranks with two ranges a step."""
    folder.mkdir()
    for rank in range(ranks):
        events = [{"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": 1000 * step + at, "dur": duration, "args": {}}
                  for step in range(steps)
                  for name, at, duration in ((f"ProfilerStep#{step + 4}", 0, 990), ("data", 0, 100), ("forward", 200, 500))]
        (folder / f"rank-{rank}.json").write_text(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": ranks},
                                                              "traceEvents": events}))


def test_hundreds_of_ranks_scroll(folder):
    write_traces(folder / "wide", 300, 2)
    call(PROGRAM, "report", folder / "wide", "--html", folder / "wide.html", "--quiet")
    found, _ = browse(folder / "wide.html")
    height = found["height"]
    check(height["canvas"] < 4000 and height["shown"] < 1000 < 10000 < height["all"], f"the timeline: {height}")
    check("rank 299" in found["last"], f"a click on the last lane shows {found['last']}")
    whole = re.fullmatch(r"(\d+) of 300 ranks", found["paper"]["timeline"])
    check(whole and 100 < int(whole.group(1)) < 300, f"on paper: {found['paper']}")


def test_the_heat_map_of_thousands_of_steps_is_cut(folder):
    write_traces(folder / "long", 2, 5500)
    call(PROGRAM, "report", folder / "long", "--html", folder / "long.html", "--quiet")
    found, _ = browse(folder / "long.html")
    check(found["heat"] == {"cells": 2 * 5000, "heads": 1 + 2 + 5000}, f"heat map: {found['heat']}")
    check("The first 5000 of 5,500 steps" in found["text"]["stragglers"], "what is left out is not said")
    cut = folder / "cut.html"
    cut.write_text((folder / "long.html").read_text().replace('"steps_left_out":0', '"steps_left_out":7', 1))
    found, _ = browse(cut)
    check("this page has 11,000 of 11,007 of all ranks" in found["text"]["overview"], "steps that are left out are not counted")
    check("5000 of the steps that this page has" in found["text"]["stragglers"], found["text"]["stragglers"][-200:])
    pieces, _ = found_by(PIECES, folder / "long.html")
    check(pieces["depth"] == [0, 1, 0, 1], f"events that cross lie in rows {pieces['depth']}")
    check(pieces["samples"] == [6, None, 8], f"samples of two recordings: {pieces['samples']}")
    check(pieces["stepped"] == [0, 1, 3, 4], f"from a view that begins later the key n leads to {pieces['stepped']}")
    check(pieces["columns"] == [["name", "exposed_ns"], ["wait_ns"]], f"columns {pieces['columns']}")
    check(pieces["place"] == "rank 0, 6 ns to 7 ns after the first step began", pieces["place"])


def test_every_section_is_drawn_where_its_data_is(folder):
    """Which sections stay empty, by what was recorded; what the others must show."""
    def page_of(name, trace, *words):
        call(PROGRAM, "report", ROOT / "tests/data/traces" / trace, "--html", folder / f"{name}.html", "--quiet", *words)
        return browse(folder / f"{name}.html")[0]

    profiled = page_of("profiled", "trainer_cpu_2ranks")
    check(profiled["empty"] == ["verification", "kernels"], f"empty: {profiled['empty']}")
    drawn = {name: count for name, count in profiled["canvases"].items() if count > 0}
    check(drawn == {"overview": 1, "timeline": 1, "top": 2, "memory": 1, "collectives": 3}, f"charts: {drawn}")
    check(["system samples", False] in profiled["boxes"], f"boxes: {profiled['boxes']}")
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
    for test in (test_eight_ranks, test_hundreds_of_ranks_scroll, test_the_heat_map_of_thousands_of_steps_is_cut,
                 test_every_section_is_drawn_where_its_data_is, test_paper_is_several_sheets, test_a_late_rank_of_the_new_side_comes_first,
                 test_before_and_after):
        with tempfile.TemporaryDirectory(prefix="sidestream-page-") as name:
            test(pathlib.Path(name))
        print("passed", test.__name__, flush=True)


if __name__ == "__main__":
    main()
