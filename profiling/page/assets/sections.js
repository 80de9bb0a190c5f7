"use strict";
// One section a question, in the order of the page.
function section(id, title, what, draw) { Page.sections.push({id, title, what, draw}); }

section("timeline", "Timeline", "All ranks on one clock. Blue lines are the ends of steps.", body => {
  const timeline = currentRun() && currentRun().timeline;
  if (!timeline || timeline.ranks.length === 0) { body.append(absent("no traces")); return false; }
  if (timeline.left_out > 0)
    body.append(element("p", {class: "what"}, `${numberText(timeline.left_out)} events shorter than ${nsText(timeline.shortest_ns)} ` +
      "are not in this page; sidestream-trace merge keeps all for Perfetto."));
  Page.timeline = new Timeline(body, timeline);
  return true;
});

// Wide enough for every point and every ridge: a roof has a slope and a flat part.
function roofs(ceilings, intensities) {
  if (!ceilings || intensities.length === 0) return [];
  const peaks = Object.entries(ceilings.flops_per_s), memory = ceilings.memory_bytes_per_s;
  const mark = name => ceilings.of_datasheet.includes(name) ? " (datasheet)" : "";
  const ridges = peaks.map(([, peak]) => peak / memory), tones = ["compute", "comm", "copies", "ranges"];
  const low = Math.min(...intensities, ...ridges) / 4, high = Math.max(...intensities, ...ridges) * 4;
  return peaks.map(([dtype, peak], at) => ({type: "line", label: `roof, ${dtype}${mark(dtype)}`,
    data: [low, ridges[at], high].map(x => ({x, y: Math.min(peak, x * memory)})),
    borderColor: colour(tones[at % tones.length]), borderWidth: 1.5, pointRadius: 0}));
}

function roofsText(ceilings) {
  if (!ceilings) return "No roofs: `sidestream bench ceilings` measures them.";
  const sheet = ceilings.of_datasheet;
  return `Roofs: ${ceilings.source}.` + (sheet.length === 0 ? "" : ` Of the datasheet, not measured: ${sheet.join(", ")}.`);
}

function drawRoofline(body, top, ceilings) {
  const points = top.map((one, at) => ({one, at})).filter(({one}) => one.intensity > 0 && one.flops_per_s > 0).map(({one, at}) =>
    ({x: one.intensity, y: one.flops_per_s / 1e9, mark: String(at + 1),
      label: `${at + 1}. ${one.name}: ${rateText(one.flops_per_s, "FLOP/s")} at ${one.intensity.toPrecision(3)} FLOP/B`}));
  body.append(element("h3", {}, "Roofline"));
  if (points.length === 0) { body.append(absent("not measured: needs the shapes of operators (--profile-shapes)")); return; }
  const lines = roofs(ceilings, points.map(point => point.x));
  const extra = lines.map(line => ({...line, data: line.data.map(({x, y}) => ({x, y: y / 1e9}))}));
  scatter(body, points, "FLOP per byte", "GFLOP/s", extra);
  const left = top.map((one, at) => at + 1).filter(at => !points.some(point => point.mark === String(at)));
  if (left.length > 0) body.append(element("p", {class: "what"}, `Not on the plot, without FLOPs that are known: ${left.join(", ")}.`));
  body.append(element("p", {class: "what"}, "Numbers are those of the table. ", roofsText(ceilings)));
}

function drawCounters(body, top) {
  const rows = top.map((one, at) => [at + 1, one.name, one.counters]).filter(row => row[2]);
  const asked = Page.data.counter_commands || [], own = currentRun().report.counter_commands || [];
  const commands = asked.length > 0 ? asked : own;
  if (rows.length === 0 && commands.length > 0)
    body.append(element("h3", {}, "Counters of Nsight Compute"),
      element("p", {class: "what"}, "Not measured. These commands read them, one rank and one kernel at a time; then --ncu ncu*.csv:"),
      element("pre", {}, commands.join("\n")));
  if (rows.length === 0) return;
  const keys = Object.keys(rows[0][2]);
  body.append(element("h3", {}, "Counters of Nsight Compute"));
  drawTable(body, {header: ["number", "name", ...keys],
    rows: rows.map(([at, name, counters]) => [at, name, ...keys.map(key => counters[key])])});
}

section("top", "Top operations and roofline", "The operations that take the most time, how near they come to what the machine can do, " +
  "and why not nearer.", body => {
  const run = currentRun();
  if (!run || run.report.top_ops.length === 0) { body.append(absent("no operations recorded")); return false; }
  const top = run.report.top_ops, five = top.slice(0, 5), counted = run.report.overview;
  const ofSteps = counted.operation_steps > 0;
  if (counted.operation_steps > 0)
    body.append(element("p", {class: "what"}, `Of ${counted.operation_steps} ${counted.profiled_only ? "profiled " : ""}steps of all ranks.`));
  stackedBars(body, five.map((one, at) => `${at + 1} ${one.name}`),
    [{label: ofSteps ? "share of the step, %" : "share of all operations, %", colour: colour("accent"),
      values: five.map(one => (ofSteps ? one.step_share : one.share) * 100)}], "%",
    value => `${value.toFixed(1)} %`);
  drawTable(body, {header: ["name", "total_ns", "step_share", "calls", "dtype", "flops_per_s", "bytes_per_s", "roof_share", "bound", "cause"],
    rows: top.map((one, at) => [`${at + 1} ${one.name}`, one.total_ns, one.step_share ?? "", one.calls, one.dtype ?? "",
      one.flops_per_s, one.bytes_per_s, one.share_of_roof, one.roofline_bound ?? "", one.cause ?? ""])});
  drawCounters(body, top);
  drawRoofline(body, top, run.report.ceilings);
  return true;
});

section("operators", "Operators", "Time of the framework's operators, with and without what they call.", body => {
  const filled = drawNamedTable(body, "operators", {amounts: true, empty: "no operators recorded", sort: /^(device|host)_self_ns$/});
  const tree = currentRun() && namedTable("operator_tree");
  if (!tree || tree.rows.length === 0) return filled;
  body.append(element("h3", {}, "Operator tree: what calls what"));
  return drawTable(body, amountsFirst(tree)) || filled;
});
section("kernels", "Kernels", "What ran on the device, by name.", body => drawNamedTable(body, "kernels",
  {amounts: true, sort: /^total_ns$/, empty: "no kernels recorded: host ranks have operators instead"}));

section("memory", "Memory", "Allocated memory over time, and what was held at the peak. " +
  "Of host memory: what was taken since the profiler started. Times of the tables are those of the timeline.", body => {
  const curve = currentRun() ? currentRun().memory_curves : [];
  const tones = ["accent", "comm", "compute", "copies", "data", "host", "ranges", "lock"];
  const windows = new Set(curve.map(one => one.window));
  if (curve.length > 0)
    lines(body, curve.map((one, at) => ({colour: colour(tones[at % tones.length]), stepped: true,
      label: `rank ${one.rank}, ${one.device < 0 ? "host" : `device ${one.device}`}${windows.size > 1 ? `, ${one.window}` : ""}`,
      points: one.points.map(([time, bytes]) => [time / 1e6, bytes / 1e6])})), "ms after the first allocation of each window", "MB allocated");
  else body.append(absent("no curve: needs memory events (--profile-memory)"));
  let any = curve.length > 0;
  for (const [name, title] of [["memory_categories", "What the peak was made of"], ["memory_peaks", "Peaks"], ["memory", "Allocations and releases"]]) {
    const table = currentRun() && namedTable(name);
    if (!table || table.rows.length === 0) continue;
    body.append(element("h3", {}, title));
    any = drawTable(body, table) || any;
  }
  return any;
});

section("modules", "Modules and layers", "Time by the module that the work belongs to, forward and backward.", body => drawNamedTable(body, "modules",
  {sort: /total_ns$/, empty: "not measured: needs --ranges layers or --profile-modules"}));

section("collectives", "Collectives", "By bucket, of one rank: what hid behind compute in the steps and what did not; " +
  "transfer is the shortest time of any rank, the rest is waiting for the others.", body => {
  const rows = currentRun() ? currentRun().report.collectives : [];
  if (rows.length === 0) { body.append(absent("no collectives recorded")); return false; }
  const name = row => row.bucket === null ? row.name : `${row.name}, bucket ${row.bucket}`, first = rows.slice(0, 16);
  const {steps} = currentRun().report.overview, ranks = currentRun().report.rank_means.length;
  const ofOneRank = steps > 0 ? steps / ranks : 1, unit = steps > 0 ? "ms a step" : "ms", each = ns => ns / 1e6 / ofOneRank;
  const buckets = rows.filter(row => row.bucket !== null).map(name);
  if (new Set(buckets).size < buckets.length) body.append(element("p", {class: "soft"}, "A bucket has a row for each size that it had in " +
    "these steps: the order of buckets is built anew after the first step of a run."));
  const left = element("div"), right = element("div");
  body.append(element("div", {class: "columns"}, left, right));
  left.append(element("h3", {}, "Exposed and hidden"));
  stackedBars(left, first.map(name), [{label: "exposed", colour: colour("data"), values: first.map(row => each(row.exposed_ns))},
    {label: "hidden", colour: colour("compute"), values: first.map(row => each(row.overlapped_ns))}], unit, msText);
  const timed = first.filter(row => row.transfer_ns !== null);
  if (timed.length > 0) {
    right.append(element("h3", {}, "Transfer and waiting"));
    stackedBars(right, timed.map(name), [{label: "transfer", colour: colour("comm"), values: timed.map(row => row.transfer_ns / 1e6)},
      {label: "waiting for other ranks", colour: colour("waitcomm"), values: timed.map(row => row.wait_ns / 1e6)}],
      steps > 0 ? "ms of the whole trace, between steps, too" : "ms", msText);
  }
  const sized = rows.filter(row => row.bytes > 0 && row.bus_gb_per_s > 0);
  if (sized.length > 0) {
    body.append(element("h3", {}, "Size against bus bandwidth"));
    const points = sized.map(row => ({x: row.bytes / 1e6, y: row.bus_gb_per_s, label: `${name(row)}: ${row.bus_gb_per_s.toPrecision(3)} GB/s`}));
    scatter(body, Object.assign(points, {name: "collectives"}), "MB each", "GB/s");
  }
  const keys = ["name", "bucket", "bytes", "count", "exposed_ns", "overlapped_ns", "transfer_ns", "wait_ns", "alg_gb_per_s", "bus_gb_per_s",
    "slowest_rank"];
  if (steps > 0) body.append(element("p", {class: "what"}, "The table: sums of one rank. Exposed and overlapped are those of " +
    `${numberText(Math.round(ofOneRank))} steps, the rest is of the whole trace, between steps, too.`));
  const titles = {alg_gb_per_s: "alg GB/s", bus_gb_per_s: "bus GB/s"};
  drawTable(body, {header: keys.map(key => titles[key] || key), rows: rows.map(row => keys.map(key => row[key]))});
  return true;
});

function heatCell(heat, row, column) {
  const own = heat.own_ns[row][column], over = heat.over_median[row][column];
  const strength = over === null ? 0 : Math.min(Math.abs(over) / 0.2, 1) * 70;
  return element("div", {title: own === null ? "not recorded" : `rank ${heat.ranks[row]}, step ${heat.steps[column]}: ${nsText(own)}`,
    style: `background: color-mix(in srgb, var(--${over > 0 ? "bad" : "good"}) ${strength}%, var(--bg))`},
  over === null ? "–" : `${signed(over * 100, 0)} %`);
}

section("stragglers", "Stragglers", "Time that each rank did not wait for the others, against the median rank of that step: red is slower.", body => {
  const run = currentRun();
  if (!run || run.report.world_size < 2) { body.append(absent("one rank only")); return false; }
  const heat = run.report.heat_map, mostSquares = 10000;
  const steps = heat.steps.slice(0, Math.max(10, Math.floor(mostSquares / heat.ranks.length)));
  body.append(element("p", {}, run.report.stragglers_text ||
    "Not looked: needs the traces of several ranks, with collectives that they have together."));
  const grid = element("div", {class: "heat", style: `grid-template-columns: 4.5rem repeat(${steps.length}, minmax(2.6rem, 1fr))`},
    element("div", {class: "head"}, ""),
    steps.map(step => element("div", {class: "head"}, step === null ? "all" : `${step}`)));
  heat.ranks.forEach((rank, row) => grid.append(element("div", {class: "head"}, `rank ${rank}`),
    ...steps.map((_, column) => heatCell(heat, row, column))));
  body.append(grid);
  if (run.report.steps_left_out > 0)
    body.append(element("p", {class: "what"}, `${steps.length} of the steps that this page has; report.json has all (--json).`));
  else if (steps.length < heat.steps.length)
    body.append(element("p", {class: "what"}, `The first ${steps.length} of ${numberText(heat.steps.length)} steps; report.json has all (--json).`));
  return true;
});

section("data", "Data loading", "Time in each phase of the host, the input phases among them.", body => {
  const table = currentRun() && namedTable("data");
  if (!table || table.rows.length === 0) { body.append(absent("not measured: needs ranges named data or h2d")); return false; }
  const means = currentRun().report.rank_means;
  const input = means.length > 0 ? sum(means.map(one => one.steps * one.idle_by_cause_ns.data)) / sum(means.map(one => one.steps)) : null;
  if (input !== null) body.append(element("div", {class: "cards"}, figure("waiting for data, a step", nsText(input))));
  return drawTable(body, table);
});

section("events", "Longest events", "The longest events of all ranks that are no steps; --csv writes all of them.",
  body => drawNamedTable(body, "events", {empty: "no events"}));

section("import", "Import notes", "What was read, what was left out, how the clocks were brought together.", body => {
  const run = currentRun();
  if (!run) { body.append(absent("no traces")); return false; }
  const {clock} = run.report, notes = run.report.import;
  body.append(element("p", {}, `${notes.files.length} file${notes.files.length === 1 ? "" : "s"}, ${numberText(notes.events)} events. Clocks: ${clock.method}` +
    (clock.residual_us_p50 === null ? "." : "; ends of collectives agree within " +
      `${numberText(clock.residual_us_p50)} µs (median), ${numberText(clock.residual_us_p95)} µs (95 %).`)));
  for (const warning of notes.warnings || []) body.append(element("p", {class: "neutral"}, warning));
  const skipped = Object.entries(notes.skipped);
  if (skipped.length > 0) drawTable(body, {header: ["left out", "events"], rows: skipped});
  if (clock.offset_us.some(offset => offset !== 0))
    drawTable(body, {header: ["rank", "clock offset, µs"], rows: clock.offset_us.map((offset, at) => [clock.ranks[at], offset])});
  drawTable(body, {header: ["file"], rows: notes.files.map(file => [file])});
  return true;
});
