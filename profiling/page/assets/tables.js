"use strict";
// Tables that sort by a click on a column and filter by what is typed.
const SHOWN_ROWS = 200, PRINTED_ROWS = 12, SENTENCES = new Set(["cause", "needs", "why"]);

function isNumber(text) { return typeof text === "number" || (text !== "" && text !== null && !isNaN(text)); }

// Of a stack the innermost frame that is not in a library; the whole is in the title.
function ownFrame(stack) {
  const frames = stack.split(";");
  return frames.find(frame => !frame.split(":")[0].includes(".so")) || frames[0];
}

// Of a path in the tree what is called and what calls it; the whole is in the title.
function endOfPath(path) {
  const names = path.split(" > ");
  return names.length <= 2 ? path : `${"· ".repeat(names.length - 2)}${names.slice(-2).join(" > ")}`;
}

// "1234567" under total_ns reads better as 1.235 ms.
function cellText(column, value) {
  if (value === "" || value === null || value === undefined) return "";
  if (column === "stack") return ownFrame(String(value));
  if (column === "path") return endOfPath(String(value));
  if (!isNumber(value)) return String(value);
  const number = Number(value);
  if (/_ns$|^ns_/.test(column)) return nsText(number);
  if (/(^|_)bytes$/.test(column)) return bytesText(number);
  if (/bytes_per_s$/.test(column)) return rateText(number, "B/s");
  if (/flops_per_s$/.test(column)) return rateText(number, "FLOP/s");
  if (/^flops$/.test(column)) return rateText(number, "FLOP");
  if (/^share$|_share$/.test(column)) return percentText(number);
  if (column === "change, ms") return threeDigits(number);
  if (/, ms$/.test(column)) return String(Number(number.toPrecision(4)));
  return numberText(number);
}

const columnTitle = name => name.replaceAll("_", " ").replace(/ ns$/, "").replace(/(.) bytes$/, "$1");

// An amount that is 0 everywhere says nothing, such as times on a device of host ranks; that nothing is exposed does.
const isAmount = column => column !== "exposed_ns" && /(_ns|bytes|_per_s|_percent)$|^flops$/.test(column);
function withoutEmptyColumns(table) {
  const says = (value, at) => value !== "" && value !== null && value !== undefined && !(isAmount(table.header[at]) && Number(value) === 0);
  const kept = table.header.map((_, at) => at).filter(at => at === 0 || table.rows.some(row => says(row[at], at)));
  return {...table, header: kept.map(at => table.header[at]), rows: table.rows.map(row => kept.map(at => row[at])),
    empty: table.header.filter((_, at) => !kept.includes(at))};
}

// Names and shapes are long: what is measured stands between the name and the rest of the texts.
function amountsFirst(table) {
  const isText = at => table.rows.some(row => typeof row[at] === "string" && !isNumber(row[at]));
  const places = table.header.map((_, at) => at), rest = places.slice(1);
  const order = [0, ...rest.filter(at => !isText(at)), ...rest.filter(isText)];
  return {...table, header: order.map(at => table.header[at]), rows: table.rows.map(row => order.map(at => row[at]))};
}

// Sorting and filter of the next table; of a theme before it where there was one.
function tableState() {
  const tables = Page.tables[Page.run] = Page.tables[Page.run] || [], at = Page.drawnTables++;
  return tables[at] = tables[at] || {column: -1, down: true, filter: "", all: false, fresh: true};
}

// {header, rows, total}: rows may be fewer than total.
function drawTable(body, given, options = {}) {
  const table = withoutEmptyColumns(given);
  if (table.rows.length === 0) { body.append(absent(options.empty || "nothing recorded")); return false; }
  const numeric = table.header.map((_, at) => table.rows.every(row => row[at] === "" || row[at] === null || isNumber(row[at])));
  const state = tableState();
  const head = element("tr"), content = element("tbody"), note = element("span"), paper = element("p", {class: "printed"});
  table.header.forEach((name, at) => head.append(element("th", {scope: "col", class: numeric[at] ? null : "text",
    onclick: () => sortBy(at)}, element("button", {type: "button"}, columnTitle(name)))));

  function sortBy(at) {
    state.down = state.column === at ? !state.down : numeric[at];
    state.column = at;
    markSorted();
    fill();
  }
  function markSorted() {
    [...head.children].forEach((cell, index) => index === state.column
      ? cell.setAttribute("aria-sort", state.down ? "descending" : "ascending") : cell.removeAttribute("aria-sort"));
  }
  function chosen() {
    const word = state.filter.toLowerCase();
    const rows = word === "" ? [...table.rows] : table.rows.filter(row => row.some(cell => String(cell).toLowerCase().includes(word)));
    if (state.column < 0) return rows;
    const sign = state.down ? -1 : 1, at = state.column;
    return rows.sort((a, b) => sign * (numeric[at] ? Number(a[at]) - Number(b[at]) : String(a[at]).localeCompare(String(b[at]))));
  }
  function classOf(at) {
    if (numeric[at]) return null;
    return SENTENCES.has(table.header[at]) ? "text sentence" : "text";
  }
  function fill() {
    const rows = chosen(), shown = state.all ? rows : rows.slice(0, SHOWN_ROWS), printed = Math.min(PRINTED_ROWS, shown.length);
    content.replaceChildren(...shown.map((row, index) => element("tr", {class: index >= PRINTED_ROWS ? "beyond" : null},
      row.map((cell, at) => element("td", {class: classOf(at), title: numeric[at] ? String(cell) : cell},
        cellText(table.header[at], cell))))));
    const total = table.total || table.rows.length;
    note.textContent = `${shown.length} of ${total} rows` +
      (total > table.rows.length ? `; the page has the first ${table.rows.length}, --csv writes all` : "");
    paper.textContent = printed < total ? `${printed} of ${total} rows` + (state.filter ? `, filter "${state.filter}"` : "") : "";
    more.hidden = state.all || rows.length <= SHOWN_ROWS;
  }
  const more = element("button", {onclick: () => { state.all = true; fill(); }}, "show all");
  const search = element("input", {type: "search", placeholder: "filter", "aria-label": "filter rows", value: state.filter,
    oninput: event => { state.filter = event.target.value; fill(); }});
  if (table.rows.length > 8) body.append(element("div", {class: "tools"}, search, note, more));
  const explained = table.header.some(name => SENTENCES.has(name));
  body.append(element("div", {class: "scroll"},
    element("table", {class: explained ? "explained" : null}, element("thead", {}, head), content)), paper);
  if (table.empty.length > 0) body.append(element("p", {class: "what"}, `Columns without an entry, left out: ${table.empty.map(columnTitle).join(", ")}.`));
  const first = state.fresh && options.sort ? table.header.findIndex(name => options.sort.test(name)) : -1;
  state.fresh = false;
  if (first >= 0) sortBy(first); else { markSorted(); fill(); }
  return true;
}

// One of the tables that --csv writes too.
function namedTable(name) { return currentRun().tables.find(table => table.name === name); }
function drawNamedTable(body, name, options) {
  const table = namedTable(name);
  if (!table) { body.append(absent("not measured")); return false; }
  return drawTable(body, options && options.amounts ? amountsFirst(table) : table, options);
}
