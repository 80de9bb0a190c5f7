"use strict";
// Puts the sections on the page, and again when run or theme change.
// A comparison begins with what came of it.
function inOrder() {
  const wanted = Page.sections.filter(one => !Page.data.sections || Page.data.sections.includes(one.id));
  const first = Page.data.verification ? wanted.filter(one => one.id === "verification") : [];
  return [...first, ...wanted.filter(one => !first.includes(one))];
}

function drawAll() {
  for (const one of Page.charts) one.destroy();
  Page.charts = [];
  Page.drawnTables = 0;
  applyTheme();
  const main = document.querySelector("main"), nav = document.querySelector("nav");
  main.replaceChildren();
  nav.replaceChildren();
  for (const one of inOrder()) {
    const body = element("section", {id: one.id}, element("h2", {}, one.title), element("p", {class: "what"}, one.what));
    main.append(body);
    let filled = false;
    try { filled = one.draw(body); } catch (error) {
      body.append(element("p", {class: "bad"}, `This section could not be drawn: ${error.message}`));
      console.error(one.id, error);
    }
    nav.append(element("a", {href: `#${one.id}`, class: filled ? null : "empty"}, one.title));
  }
  watchScrolling();
}

function watchScrolling() {
  if (Page.observer) Page.observer.disconnect();
  Page.observer = new IntersectionObserver(entries => {
    for (const entry of entries) {
      const link = document.querySelector(`nav a[href="#${entry.target.id}"]`);
      if (link) link.classList.toggle("here", entry.isIntersecting);
    }
  }, {rootMargin: "-15% 0px -70% 0px"});
  document.querySelectorAll("main section").forEach(one => Page.observer.observe(one));
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  drawAll();
}

function start() {
  const header = document.querySelector("header");
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  if (Page.data.runs.length > 1) {
    Page.run = Page.data.runs.length - 1;
    const choose = event => { Page.run = Number(event.target.value); drawAll(); };
    header.append(element("select", {id: "run", "aria-label": "run", onchange: choose},
      Page.data.runs.map((run, at) => element("option", {value: at, selected: at === Page.run ? "" : null}, run.label))));
  }
  const other = () => document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  header.append(element("button", {id: "theme", onclick: () => setTheme(other())}, "light / dark"));
  drawAll();
  // Paper is white: charts are drawn with its colours while it prints.
  let before = null;
  window.addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; Page.printing = true; setTheme("light"); });
  window.addEventListener("afterprint", () => { Page.printing = false; if (before) setTheme(before); });
  document.body.dataset.readyMs = String(Math.round(performance.now()));  // since the page was opened
}
start();
