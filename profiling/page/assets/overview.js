"use strict";
// Overview, verification, before and after.
function wordOf(text, kind) { return element("span", {class: `word ${kind}`}, text); }
const kindOfVerdict = word => word === "faster" ? "good" : word === "slower" ? "bad" : "neutral";

function leftOutText(overview) {
  const counts = Object.entries(overview.left_out);
  return counts.length === 0 ? "" : ` (left out: ${counts.map(([tag, count]) => `${count} ${tag}`).join(", ")})`;
}

// What the run said at its end, of all its steps: the verdict above is of these traces.
function ownVerdict(own) {
  return element("p", {class: "what"}, `At its end the run said of all its ${numberText(own.steps)} steps: compute ${percentText(own.compute)}, ` +
    `communication ${percentText(own.comm)}, input ${percentText(own.io)}, host ${percentText(own.cpu)}.`);
}

// What of the run's wall time was no training.
function wallTimeText(account) {
  const names = {replayed_s: "trained again", startup_s: "start-up", restore_s: "restoring", checkpoint_stall_s: "saving",
    evaluation_s: "evaluating", detection_s: "noticing failures", idle_s: "idle", other_s: "other"};
  const parts = Object.keys(names).filter(key => account[key] >= 0.05).map(key => `${names[key]} ${account[key].toFixed(1)} s`);
  return [`of ${account.wall_s.toFixed(0)} s`, ...parts].join(", ");
}

Page.sections.push({id: "overview", title: "Overview", what: "Where a step goes, on every rank, and what bounds the run.", draw(body) {
  const run = currentRun();
  if (!run) { body.append(absent("no traces: record some with --profile")); return false; }
  const report = run.report, metrics = report.metrics, means = report.rank_means;
  const names = {io: "waiting for input", cpu: "other work of the host", gpu: "computing", compute: "computing", comm: "communication"};
  const device = metrics.gpu_utilisation !== null, cost = metrics.profiler_cost;
  const beside = metrics.steps_without_profiler ? `compared with the ${metrics.steps_without_profiler} until the last trace` : "";
  const read = report.clock.ranks.length;
  const rounded = metrics.tokens_per_s === null ? null : numberText(Math.round(metrics.tokens_per_s));
  const tensor = metrics.tensor_core_share === null ? null : percentText(metrics.tensor_core_share);
  for (const line of report.urgent) body.append(element("p", {}, wordOf(line, "bad")));
  if (report.verdict) body.append(element("p", {}, "Bound by ", 
    wordOf(report.verdict_sure === false ? report.verdict_text : names[report.verdict] || report.verdict, "neutral")));
  if (report.run_verdict) body.append(ownVerdict(report.run_verdict));
  body.append(element("div", {class: "cards"},
    figure("step, median", msText(metrics.step_ms_p50), "of these traces"),
    figure("tokens per second", rounded, metrics.tokens_source === null ? "" : `${metrics.tokens_source === "metrics.jsonl" ? "median of all steps" : ""} of ${metrics.tokens_source}`.trim()),
    figure("MFU", metrics.mfu === null ? null : percentText(metrics.mfu)),
    figure("MFU by PaLM's formula", metrics.mfu_palm === null ? null : percentText(metrics.mfu_palm)),
    metrics.ettr === null || !metrics.ettr_account ? null
      : figure("effective training time", percentText(metrics.ettr), wallTimeText(metrics.ettr_account)),
    device ? figure("device busy", percentText(metrics.gpu_utilisation)) : null,
    device ? figure("Tensor Core share", tensor, metrics.tensor_core_source) : null,
    metrics.process_cores === null ? null
      : figure("processors a rank runs on", numberText(metrics.process_cores), `${numberText(metrics.process_cores_short)} more wanted`),
    metrics.machine_cpu === null ? null : figure("processors busy", percentText(metrics.machine_cpu), "of the machine"),
    metrics.profiler_was_off ? figure("profiler", "off", "in these steps")
      : cost !== null ? figure("profiler: longer steps", `${signed(cost * 100, 1)} %`, beside)
      : metrics.profiler_cost_below === null ? null
        : figure("profiler: longer steps", "within their scatter", [`of ${percentText(metrics.profiler_cost_below)}`, beside].filter(Boolean).join(", ")),
    figure("ranks", String(report.world_size), read < report.world_size ? `${read} of them read` : "")));
  if (report.steps_left_out > 0) body.append(element("p", {class: "what"}, `Step by step this page has ${numberText(report.steps.length)} of ` +
    `${numberText(report.steps.length + report.steps_left_out)} of all ranks: the first, those with tags, the longest, and those in which ranks differ most. ` +
    "Means are of all; report.json has each (--json)."));
  if (means.length === 0) { body.append(absent("no steps in the traces")); return true; }
  body.append(element("h3", {}, `Step budget: mean of ${sum(means.map(one => one.steps))} steps` +
    (means.length < 2 ? "" : ` of ${means.length} ranks together`) + leftOutText(report.overview)));
  stackedBars(body, means.map(one => `rank ${one.rank}`), PARTS.map(([label, tone, part]) => ({label, colour: colour(tone),
    values: means.map(one => part(one) / 1e6)})).filter(one => one.values.some(value => value > 0)), "ms", msText);
  return true;
}});

const boundText = one => (one.gain_ceiling_pct === null ? "bound not known" : `at most ${one.gain_ceiling_pct.toFixed(1)} %`) +
  (one.comes_first ? "; first, for what else is found may follow from it" : "");

// Where the largest piece of it lies, as the timeline shows it. Times count from the first step of the run, shown or not.
function placeOf(one) {
  if (one.start_ns === null) return "";
  const stream = one.stream === null ? "" : `, stream ${one.stream}`;
  return `rank ${one.place_rank}${stream}, ${nsText(one.start_ns)} to ${nsText(one.end_ns)} after the first step began`;
}

Page.sections.push({id: "advice", title: "Advice", what: "What to change, the largest possible gain first, after what the others may follow from. " +
  "A bound is the time that would vanish over the step time: no promise.", draw(body) {
  const run = currentRun();
  if (!run) { body.append(absent("no traces")); return false; }
  const {advice, not_measured} = run.report;
  if (advice.length === 0) body.append(element("p", {}, "Nothing found by the rules that could look."));
  for (const one of advice) {
    const rows = [["evidence", one.evidence_text], ["where", placeOf(one)], ["fix", one.fix], ["false if", one.false_if], ["check", one.check],
      ["looks at", `${one.looks_at}; threshold ${one.threshold} (${one.source})`]];
    const worst = one.figures_of_rank === null ? "" : `; figures of rank ${one.figures_of_rank}, the worst`;
    const whose = one.rank !== null ? ` (rank ${one.rank})` : one.count > 1 ? ` (${one.count} ranks${worst})` : "";
    const title = `${one.title || one.rule}${whose}`;
    body.append(element("div", {class: "advice"}, element("h4", {}, element("span", {}, title),
      element("span", {class: "neutral"}, boundText(one))),
      element("dl", {}, rows.filter(row => row[1]).flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]))));
  }
  if (not_measured.length > 0) {
    body.append(element("h3", {}, "Not measured, and what it needs"));
    drawTable(body, {header: ["rule", "needs"], rows: not_measured.map(one => [one.rule, one.needs])});
  }
  if (run.report.nothing_found.length > 0) {
    body.append(element("h3", {}, "Looked, and found nothing"));
    body.append(element("p", {class: "what"}, run.report.nothing_found.join(", ")));
  }
  return advice.length > 0;
}});

function drawPairs(body, found) {
  const blocks = found.blocks;
  chart(body, {type: "line", data: {labels: blocks.map(block => `block ${block.block}`), datasets: [
    {label: "base", data: blocks.map(block => block.base_ms), borderColor: colour("soft"), backgroundColor: colour("soft")},
    {label: "new", data: blocks.map(block => block.new_ms), borderColor: colour("accent"), backgroundColor: colour("accent")}]},
    options: {scales: {y: axis("median step, ms", {beginAtZero: true})}, plugins: {legend: {position: "bottom", labels: {boxWidth: 12}}}}}, true);
}

const isThere = part => part.change_ms !== 0 || part.base_ms !== 0;

function drawParts(body, given, whole = "step") {
  const parts = given.filter(isThere);
  const total = key => sum(parts.map(part => part[key]));
  const ofBlocks = part => part.low_ms === null || part.low_ms === undefined ? "" : `${threeDigits(part.low_ms)} to ${threeDigits(part.high_ms)}`;
  drawTable(body, {header: ["part", "base, ms", "new, ms", "change, ms", "95 % over the blocks"],
    rows: [...parts.map(part => [part.name, part.base_ms, part.new_ms, part.change_ms, ofBlocks(part)]),
      [whole, total("base_ms"), total("new_ms"), total("change_ms"), ""]]});
}

function drawChange(body, parts) {
  const rows = parts.filter(isThere);
  stackedBars(body, rows.map(part => part.name), [{label: "change of the step", colour: colour("accent"), values: rows.map(part => part.change_ms)}],
    "ms, new − base (below 0: faster)", msText);
}

// A tone a seed. Where both sides learn the same their curves lie on each other: the new side is a
// thick pale line, the base dashed on top of it.
function drawCurves(body, curves) {
  const tones = ["accent", "comm", "compute", "copies", "data", "operators"];
  const look = {new: tone => ({colour: `color-mix(in srgb, ${tone} 45%, transparent)`, width: 5}),
    base: tone => ({colour: tone, width: 1.6, dash: [5, 4]})};
  const series = key => ["new", "base"].flatMap(side => curves[side].map((one, at) =>
    ({label: `${side}, seed ${one.seed || at + 1}`, points: one[key], ...look[side](colour(tones[at % tones.length]))})))
    .filter(one => one.points.length > 0);
  lines(body, series("loss"), "step", "training loss");
  const evaluated = series("val_loss");
  if (evaluated.some(one => one.points.length > 1)) lines(body, evaluated, "step", "validation loss", true);
}

// The budgets of both sides on one scale: what was slow, and what became of it.
function drawBudgets(body, runs) {
  const rows = [["base", runs[0]], ["new", runs[1]]].flatMap(([side, run]) =>
    run.report.rank_means.slice(0, 8).map(mean => ({name: `${side}, rank ${mean.rank}`, mean})));
  if (rows.length === 0) { body.append(absent("no steps in the traces")); return; }
  stackedBars(body, rows.map(row => row.name), PARTS.map(([label, tone, part]) => ({label, colour: colour(tone),
    values: rows.map(row => part(row.mean) / 1e6)})).filter(one => one.values.some(value => value > 0)),
    "ms of a mean step", msText);
}

// A finding is taken up when a flag of its fix is among what differs.
function takenUp(fix, differences) {
  const flags = (fix.match(/--[a-z0-9-]+/g) || []).map(flag => flag.slice(2));
  return differences.some(one => one.kind === "compared" && flags.includes(one.field));
}

function drawAdvised(body, side, differences) {
  if (side.advice.length === 0) { body.append(element("p", {}, "Nothing found by the rules that could look.")); return; }
  body.append(element("ul", {class: "advised"}, side.advice.map(one => element("li", {},
    element("b", {}, one.title), `, ${boundText(one)}`,
    differences && takenUp(one.fix, differences) ? wordOf("changed here", "good") : null, element("br"),
    element("span", {class: "soft"}, `${one.fix} (${one.evidence})`)))));
}

function drawOperations(body, side) {
  if (side.top_ops.length === 0) { body.append(absent("no operations recorded")); return; }
  drawTable(body, {header: ["operation", "ms a step", "step_share", "bound", "roof_share", "room, ms", "cause"],
    rows: side.top_ops.map(one => [one.name, one.step_ms, one.share_of_step, one.roofline_bound, one.share_of_roof, one.room_ms,
      one.cause ?? "not measured"])});
}

function drawHeadline(body, found) {
  const time = found.step_time, losses = found.convergence.final_val_loss, memory = found.memory;
  const percent = ratio => `${signed((ratio - 1) * 100, 1)} %`, times = value => `${Number(value.toPrecision(3))}×`;
  const interval = (text, low, high) => low === null || low === undefined ? "" : `95 %: ${text(low)} to ${text(high)}`;
  // A ratio is of the pairs, a step the median of its side: for few blocks they need not agree.
  const pairs = text => ["by pairs", text].filter(Boolean).join(", "), median = text => ["median of the blocks", text && `mean ${text}`].filter(Boolean).join(", ");
  const kind = found.decision.accepted ? "good" : "neutral";
  for (const remark of found.remarks || []) body.append(element("p", {}, wordOf(remark, "bad")));
  body.append(element("p", {}, "The new side is ", wordOf(time.verdict, kindOfVerdict(time.verdict)), " and ",
    wordOf(found.decision.accepted ? "accepted" : "not accepted", kind), `: ${found.decision.reason}.`));
  body.append(element("div", {class: "cards"},
    figure("speed-up", time.speed_up ? times(time.speed_up) : null, pairs(interval(times, time.speed_up_low, time.speed_up_high))),
    figure("base step", msText(time.base_ms), median(interval(msText, time.base_low_ms, time.base_high_ms))),
    figure("new step", msText(time.new_ms), median(interval(msText, time.new_low_ms, time.new_high_ms))),
    figure("step takes", time.ratio === null ? null : percent(time.ratio), pairs(interval(percent, time.ratio_low, time.ratio_high))),
    figure("convergence", found.convergence.verdict),
    figure("final validation loss", losses ? losses.new.toFixed(4) : null, losses ? `base ${losses.base.toFixed(4)}` : ""),
    figure("peak memory", memory ? bytesText(memory.new_bytes) : null, memory ? `base ${bytesText(memory.base_bytes)}` : "")));
}

function drawSides(body, found) {
  const {base, new: fresh, needs} = found.profiles;
  if (!base) {
    body.append(element("h3", {}, "What was slow"), absent(`not measured: no profiled runs${needs ? ` (${needs})` : ""}`));
    return;
  }
  body.append(element("h3", {}, "What was slow"));
  for (const [name, side] of [["base", base], ["new side", fresh]])
    for (const line of side.urgent) body.append(element("p", {}, `On the ${name}: `, wordOf(line, "bad")));
  body.append(element("p", {}, "The base is bound by ", wordOf(base.verdict || "not measured", "neutral"),
    "; the new side by ", wordOf(fresh.verdict || "not measured", "neutral"), "."));
  drawBudgets(body, Page.data.runs);
  body.append(element("h3", {}, "Longest operations of the base: room is what the roof would save"));
  drawOperations(body, base);
  body.append(element("h3", {}, "What was advised for the base"));
  drawAdvised(body, base, found.differences);
  if (found.proof) body.append(element("p", {}, `Proof of "${found.proof.finding}": ${found.proof.reason}.`));
}

// Half as much again is a factor: nothing is 132 % shorter.
const effectText = effect => effect > 10 ? "a factor of more than 10" : effect < 0.5 ? `${percentText(effect)} or more` : `a factor of ${(1 + effect).toPrecision(3)} or more`;

function drawProof(body, found) {
  const time = found.step_time, left = element("div"), right = element("div");
  body.append(element("h3", {}, "The proof"));
  if (time.smallest_effect !== null)
    body.append(element("p", {class: "what"}, `${found.blocks.length} pairs of runs, ${found.warm_up_steps} warm-up steps left out of each. ` +
      `With the scatter of these pairs, 80 % of such verifications show a change by ${effectText(time.smallest_effect)}` +
      (time.blocks_for_3_pct === null ? "; for one of 3 % more than 1000 blocks would be needed." : `; one of 3 % needs ${time.blocks_for_3_pct} blocks.`)));
  body.append(element("div", {class: "columns"}, left, right));
  drawPairs(left, found);
  if (found.curves) drawCurves(right, found.curves); else right.append(absent("no metrics.jsonl of both sides"));
  right.append(element("p", {class: "what"}, found.convergence.reason));
}

function drawWhy(body, found) {
  const traces = Page.data.trace_change;
  if (found.parts.length > 0) {
    body.append(element("h3", {}, "What the change is made of, by the timed runs"));
    drawParts(body, found.parts);
  }
  if (!traces || traces.parts.length === 0) return;
  body.append(element("h3", {}, "The same by the traces: a mean step of one rank"));
  body.append(element("p", {class: "what"}, `Of ${traces.base_steps} and ${traces.new_steps} steps of all ranks, from ${traces.base_windows} and ` +
    `${traces.new_windows} profiled windows: by operation and by bucket there are no intervals.`));
  drawChange(body, traces.parts);
  drawParts(body, traces.parts);
  for (const [key, title, whole] of [["phases", "By phase", "step"], ["operations", "By operation, the largest changes", "step"],
    ["collectives", "Exposed communication by bucket", "all"]]) {
    if (!traces[key] || traces[key].length === 0) continue;
    body.append(element("h3", {}, title));
    drawParts(body, traces[key], whole);
  }
}

function drawMade(body, found) {
  if (found.trials && found.trials.length > 0) {
    body.append(element("h3", {}, "Tried before"));
    drawTable(body, {header: ["base", "new", "accepted", "verdict", "why", "time"],
      rows: found.trials.map(one => [one.base, one.new, one.accepted ? "yes" : "no", one.verdict, one.reason, one.time])});
  }
  const commands = [found.command, ...(found.commands || [])].join("\n\n");
  const environment = Object.entries(found.environment || {}).map(([name, value]) => `${name}: ${value}`);
  if (found.version) environment.unshift(`Sidestream ${found.version}`);
  body.append(element("h3", {}, "How it was made"),
    element("pre", {}, [`${commands}\n`, `base: ${found.base}`, `new:  ${found.new}`, ...environment].join("\n")));
}

Page.sections.push({id: "verification", title: "Before and after", what: "What was slow, what was advised, what changed, and the proof: " +
  "base and new in pairs, the step time with its interval, and whether the same is learned.", draw(body) {
  const found = Page.data.verification;
  if (!found) { body.append(absent("one run only: `sidestream verify` or `sidestream-trace compare` make this section")); return false; }
  drawHeadline(body, found);
  drawSides(body, found);
  if (found.differences.length > 0) {
    body.append(element("h3", {}, "What changed"));
    drawTable(body, {header: ["setting", "base", "new", "kind"], rows: found.differences.map(one => [one.field, one.base, one.new, one.kind])});
  }
  drawProof(body, found);
  if (found.profiles.new) {
    body.append(element("h3", {}, "What is left: longest operations of the new side"));
    drawOperations(body, found.profiles.new);
    body.append(element("h3", {}, "What is advised for the new side"));
    drawAdvised(body, found.profiles.new, null);
  }
  drawWhy(body, found);
  drawMade(body, found);
  return true;
}});
