"use strict";
// Chart.js with the page's colours; charts are made again when the theme or the run changes.
function applyTheme() {
  Chart.defaults.color = colour("soft");
  Chart.defaults.borderColor = colour("line");
  Chart.defaults.font.family = "system-ui, sans-serif";
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
}

function chart(body, config, low) {
  const canvas = element("canvas", {role: "img"});
  body.append(element("div", {class: low ? "plot low" : "plot"}, canvas));
  const made = new Chart(canvas, config);
  Page.charts.push(made);
  return made;
}

function axis(title, more) { return {title: {display: true, text: title}, ...more}; }

// Horizontal stacked bars: rows of names, series of {label, colour, values}.
function stackedBars(body, names, series, unit, text) {
  const holder = element("div", {class: "plot", style: `height:${Math.max(120, 34 * names.length + 90)}px`});
  const canvas = element("canvas", {role: "img"});
  holder.append(canvas);
  body.append(holder);
  const made = new Chart(canvas, {
    type: "bar",
    data: {labels: names, datasets: series.map(one => ({
      label: one.label, data: one.values, backgroundColor: one.colour, stack: "one", maxBarThickness: 26}))},
    options: {indexAxis: "y", scales: {x: axis(unit, {stacked: true}), y: {stacked: true, grid: {display: false}}},
      plugins: {legend: {position: "bottom", labels: {boxWidth: 12}},
        tooltip: {callbacks: {label: item => `${item.dataset.label}: ${text(item.raw)}`}}}}});
  Page.charts.push(made);
  return made;
}

function lines(body, series, xTitle, yTitle, low) {
  return chart(body, {
    type: "line",
    data: {datasets: series.map(one => ({label: one.label, data: one.points.map(([x, y]) => ({x, y})), borderColor: one.colour,
      backgroundColor: one.colour, borderWidth: one.width || 1.6, pointRadius: one.points.length > 60 ? 0 : 2, stepped: one.stepped || false, order: series.length - series.indexOf(one)}))},
    options: {parsing: false, normalized: true, scales: {x: axis(xTitle, {type: "linear"}), y: axis(yTitle)},
      interaction: {mode: "nearest", intersect: false}, plugins: {legend: {position: "bottom", labels: {boxWidth: 12}}}}}, low);
}

// points: {x, y, label}; extra datasets may be lines, such as a roof.
function scatter(body, points, xTitle, yTitle, extra, onclick) {
  const log = title => axis(title, {type: "logarithmic"});
  return chart(body, {
    data: {datasets: [...(extra || []), {type: "scatter", label: points.name || "operations", data: points, pointRadius: 6,
      pointHoverRadius: 8, backgroundColor: colour("accent")}]},
    options: {scales: {x: log(xTitle), y: log(yTitle)}, onclick,
      plugins: {legend: {position: "bottom", labels: {boxWidth: 12}},
        tooltip: {callbacks: {label: item => item.raw.label || item.dataset.label}}}}});
}
