"use strict";
// What every part of the page uses: the data, elements, numbers as text, colours.
const Page = {
  data: JSON.parse(document.getElementById("data").textContent),
  run: 0,          // which run is shown
  charts: [],
  tables: [],      // what was sorted, filtered and shown in each table of each run: another theme keeps it
  drawnTables: 0,  // so far
  views: [],       // of the timeline of each run
  printing: false,
  sections: [],    // {id, title, what, draw(body) -> true when there is something to see}
};

// element("div", {class: "x", onclick: f}, "text", child)
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function scaled(value, base, units) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) { value /= base; ++unit; }
  return `${Number(value.toPrecision(4))} ${units[unit]}`;
}
const nsText = ns => scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
const msText = ms => nsText(ms === null || ms === undefined ? null : ms * 1e6);
const bytesText = bytes => scaled(bytes, 1000, ["B", "KB", "MB", "GB", "TB"]);
const rateText = (rate, unit) => scaled(rate, 1000, ["", "K", "M", "G", "T", "P"].map(prefix => prefix + unit));
const percentText = share => share === null || share === undefined ? "–" : `${(share * 100).toFixed(1)} %`;
const numberText = value => value === null || value === undefined ? "–"
  : Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(5)));

// Both ends of a long name: kernels differ at either.
const shortName = (name, most) => name.length <= most ? name
  : `${name.slice(0, Math.ceil(most / 2))}…${name.slice(name.length - Math.floor(most / 2) + 1)}`;
const threeDigits = value => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Number(Math.abs(value).toPrecision(3))}`;
const signed = (value, digits) => {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value > 0 ? "+" : "−"}${text}`;
};

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// Of a late rank: the report has one word.
const phaseText = phase => phase === "other" ? "other work of the host" : phase;
const absent = text => element("p", {class: "absent"}, text);
const currentRun = () => Page.data.runs[Page.run];
const sum = values => values.reduce((total, value) => total + value, 0);

function figure(name, value, note) {
  const missing = value === null || value === undefined || value === "–";
  const long = !missing && String(value).length > 16;
  return element("div", {class: missing ? "figure missing" : "figure"},
    element("b", {class: long ? "long" : null}, missing ? "not measured" : value),
    element("span", {}, note ? `${name} (${note})` : name));
}

// The parts of a step, or of the mean of some, in the order in which they are stacked. They add up to the step.
const PARTS = [
  ["compute", "compute", step => step.compute_ns],
  ["exposed communication", "comm", step => step.exposed_comm_ns],
  ["exposed copies", "copies", step => step.exposed_memcpy_ns],
  ["idle: waiting for data", "data", step => step.idle_by_cause_ns.data],
  ["idle: host too slow", "host", step => step.idle_by_cause_ns.host],
  ["idle: synchronisation", "sync", step => step.idle_by_cause_ns.sync],
  ["idle: in collectives", "waitcomm", step => step.idle_by_cause_ns.comm],
  ["idle: locks", "lock", step => step.idle_by_cause_ns.lock],
  ["idle: not explained", "other", step => step.idle_by_cause_ns.other],
];
const isSingular = step => step.tags.some(tag => ["unfinished", "incomplete", "outlier"].includes(tag));
// Tagged steps (first, evaluation, checkpoint) stay out of means, unless there are no others; what
// was cut off or is an outlier always does.
function plainSteps(report) {
  const plain = report.steps.filter(step => step.tags.length === 0);
  return plain.length > 0 ? plain : report.steps.filter(step => !isSingular(step));
}
