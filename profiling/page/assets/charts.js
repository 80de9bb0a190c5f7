"use strict";
// Chart.js with the page's colours; charts are made again when the theme or the run changes.
function applyTheme() {
  Chart.defaults.color = colour("soft");
  Chart.defaults.borderColor = colour("line");
  Chart.defaults.font.family = "system-ui, sans-serif";
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
}

// What a chart is of, for those who do not see it: the heading above it.
function headingOf(body) {
  const section = body.closest("section"), last = list => list[list.length - 1];
  const heading = last(body.querySelectorAll("h3")) || last(section.querySelectorAll("h3")) || section.querySelector("h2");
  return `chart: ${heading.textContent}`;
}

function chart(body, config, low) {
  const canvas = element("canvas", {role: "img", "aria-label": headingOf(body)});
  body.append(element("div", {class: low ? "plot low" : "plot"}, canvas));
  const made = new Chart(canvas, config);
  Page.charts.push(made);
  return made;
}

function axis(title, more) { return {title: {display: true, text: title}, ...more}; }

// Names take a third of a chart at most: the bars are what is looked at.
function fittingLabel(value) {
  const name = String(this.getLabelForValue(value)), characters = Math.floor(this.chart.width / 3 / 6.5);
  return shortName(name, Math.max(12, characters));
}

// Horizontal stacked bars: rows of names, series of {label, colour, values}.
function stackedBars(body, names, series, unit, text) {
  const tallest = 8000;  // browsers draw nothing of a canvas that is much taller
  const holder = element("div", {class: "plot", style: `height:${Math.min(tallest, Math.max(120, 34 * names.length + 90))}px`});
  const canvas = element("canvas", {role: "img", "aria-label": headingOf(body)});
  holder.append(canvas);
  body.append(holder);
  const made = new Chart(canvas, {
    type: "bar",
    data: {labels: names, datasets: series.map(one => ({
      label: one.label, data: one.values, backgroundColor: one.colour, stack: "one", maxBarThickness: 26}))},
    options: {indexAxis: "y", scales: {x: axis(unit, {stacked: true}), y: {stacked: true, grid: {display: false}, ticks: {callback: fittingLabel}}},
      plugins: {legend: {position: "bottom", labels: {boxWidth: 12}},
        tooltip: {callbacks: {label: item => `${item.dataset.label}: ${text(item.raw)}`}}}}});
  Page.charts.push(made);
  return made;
}

function lines(body, series, xTitle, yTitle, low) {
  return chart(body, {
    type: "line",
    data: {datasets: series.map((one, at) => ({label: one.label, data: one.points.map(([x, y]) => ({x, y})), borderColor: one.colour,
      backgroundColor: one.colour, borderWidth: one.width || 1.6, pointRadius: one.points.length > 60 || one.dash ? 0 : 2,
      borderDash: one.dash, stepped: one.stepped || false, order: series.length - at}))},
    options: {parsing: false, normalized: true, scales: {x: axis(xTitle, {type: "linear"}), y: axis(yTitle)},
      interaction: {mode: "nearest", intersect: false},
      plugins: {legend: {position: "bottom", labels: {usePointStyle: true, pointStyle: "line", pointStyleWidth: 28}}}}}, low);
}

const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

// Beside a point, where no other point and no label so far is; all corners taken: at the first.
function freePlace({x, y}, width, taken) {
  const places = [[8, -14], [-8 - width, -14], [8, 4], [-8 - width, 4], [-width / 2, -20], [-width / 2, 8]].map(([right, down]) =>
    ({left: x + right, right: x + right + width, top: y + down, bottom: y + down + 11}));
  return places.find(place => !taken.some(other => meet(place, other))) || places[0];
}

// The number of a point beside it: as in the table.
const numbers = {id: "numbers", afterDatasetsDraw(made) {
  const named = made.data.datasets.flatMap((set, at) => made.getDatasetMeta(at).data.map((mark, index) =>
    ({mark, text: set.data[index] && set.data[index].mark})).filter(one => one.text));
  const taken = named.map(({mark}) => ({left: mark.x - 6, right: mark.x + 6, top: mark.y - 6, bottom: mark.y + 6}));
  made.ctx.fillStyle = colour("ink");
  made.ctx.font = "11px system-ui, sans-serif";
  for (const {mark, text} of named) {
    const place = freePlace(mark, made.ctx.measureText(text).width, taken);
    made.ctx.fillText(text, place.left, place.bottom - 2);
    taken.push(place);
  }
}};

// Chart.js names powers of ten alone where there is little room, and nothing above the last of them. Here: 1, 2 and 5 of each decade
// where they have room, else its first, and a 5 at the end.
function logTicks(scale) {
  const room = scale.isHorizontal() ? scale.chart.width / 60 : scale.chart.height / 45;
  const within = [];
  for (let power = Math.floor(Math.log10(scale.min)); power <= Math.log10(scale.max); ++power)
    for (const digit of [1, 2, 5]) within.push({value: Number(`${digit}e${power}`), digit});
  const shown = within.filter(({value}) => value >= scale.min && value <= scale.max);
  scale.ticks = shown.length <= room ? shown : shown.filter(({digit}, at) => digit === 1 || digit === 5 && at === shown.length - 1);
}

// points: {x, y, label, mark}; extra datasets may be lines, such as a roof.
function scatter(body, points, xTitle, yTitle, extra) {
  // Room above the highest point for its number.
  const raised = scale => { if (!scale.isHorizontal()) scale.max *= 1.6; };
  const log = title => axis(title, {type: "logarithmic", afterDataLimits: raised, afterBuildTicks: logTicks,
    ticks: {autoSkip: false, maxRotation: 0, callback: value => value.toLocaleString("en", {maximumSignificantDigits: 3})}});
  return chart(body, {
    data: {datasets: [...(extra || []), {type: "scatter", label: points.name || "operations", data: points, pointRadius: 6,
      pointHoverRadius: 8, backgroundColor: colour("accent")}]},
    plugins: [numbers],
    options: {scales: {x: log(xTitle), y: log(yTitle)},
      plugins: {legend: {position: "bottom", labels: {boxWidth: 12}},
        tooltip: {callbacks: {label: item => item.raw.label || item.dataset.label}}}}});
}
