"use strict";
// The timeline of all ranks: a canvas with lanes, zoom with the wheel, pan by dragging, a click for an event. The canvas is what is seen of
// them and no taller: browsers draw none of some ten thousand pixels. The frame scrolls, and the canvas draws the lanes that are in it.
const LANE_HEIGHT = 15, LANE_GAP = 3, RANK_GAP = 12, LANE_LABEL_WIDTH = 84, AXIS_HEIGHT = 22, DEEPEST = 6;
const FONT = "11px system-ui, sans-serif";
const SAMPLE_HEIGHT = 22, SAMPLES = "system";
const TALLEST = 8000, TALLEST_CANVAS = 32000;  // on paper, which does not scroll; in pixels of the device

class Timeline {
  constructor(body, timeline) {
    this.timeline = timeline;
    this.run = Page.run;
    const kept = Page.views[Page.run];  // drawn before, with another theme
    this.hidden = kept ? kept.hidden : new Set(["operators", "calls"].filter(() => timeline.ranks.length > 2));
    this.prepare();
    const steps = this.steps();
    this.canvas = element("canvas", {tabindex: 0, role: "img", "aria-label": "timeline of all ranks"});
    this.holder = element("div", {}, this.canvas);  // as tall as all lanes
    this.frame = element("div", {class: "timeline"}, this.holder);
    this.paper = element("p", {class: "printed"});
    this.detail = element("div", {class: "detail", "aria-live": "polite"},
      "Click an event. Wheel: zoom, drag: move, keys + − ← →; n and p: the next event of the lane and the one before.");
    this.select = element("select", {"aria-label": "step", onchange: event => this.show(steps[event.target.value])},
      steps.map((step, at) => element("option", {value: at}, step.label)));
    body.append(this.tools(), this.frame, this.paper, this.detail);
    this.listen();
    if (kept) this.restore(kept); else this.open(steps);
  }

  open(steps) {
    const opened = this.firstPlain(steps);
    this.show(steps[opened]);
    this.select.value = String(opened);
    this.keep();
  }

  restore({from, to, top, step, chosen}) {
    Object.assign(this, {from, to, chosen});
    this.select.value = step;
    this.resize();
    this.frame.scrollTop = Page.printing ? 0 : top;
    if (chosen) this.choose(chosen); else this.draw();
  }

  keep() {
    if (Page.printing || !this.frame.isConnected) return;
    Page.views[this.run] = {from: this.from, to: this.to, top: this.frame.scrollTop, step: this.select.value, chosen: this.chosen,
      hidden: this.hidden};
  }

  // Of the steps that the means are of: the first of a run is not like the others.
  firstPlain(steps) {
    const plain = new Set(plainSteps(currentRun().report).map(step => step.step));
    const at = steps.findIndex((one, index) => index > 0 && plain.has(one.step));
    return at > 0 ? at : Math.min(1, steps.length - 1);
  }

  // Depth of nested events, once: an event lies below those that are still open when it starts, as high as there is room.
  prepare() {
    for (const rank of this.timeline.ranks) for (const lane of rank.lanes) {
      const count = lane.events.length / 3, ends = [];
      lane.depth = new Uint8Array(count);
      lane.rows = 1;
      for (let i = 0; i < count; ++i) {
        const start = lane.events[3 * i], end = start + lane.events[3 * i + 1];
        const free = ends.findIndex(other => other <= start), depth = free < 0 ? ends.length : free;
        ends[depth] = end;
        lane.depth[i] = Math.min(depth, DEEPEST - 1);
        lane.rows = Math.max(lane.rows, lane.depth[i] + 1);
      }
      lane.longest = 0;
      for (let i = 0; i < count; ++i) lane.longest = Math.max(lane.longest, lane.events[3 * i + 1]);
    }
  }

  steps() {
    const {start_ns: first, length_ns: length} = this.timeline;
    const whole = {label: "everything", start: first, end: first + length}, byStep = new Map();
    for (const rank of this.timeline.ranks) for (const [step, start, end] of rank.windows) {
      const one = byStep.get(step) || {step, label: step === null ? "window" : `step ${step}`, start, end};
      byStep.set(step, {step, label: one.label, start: Math.min(one.start, start), end: Math.max(one.end, end)});
    }
    return [whole, ...byStep.values()];
  }

  // Whether these lanes are shown.
  box(kind, label) {
    return element("label", {}, element("input", {type: "checkbox", checked: this.hidden.has(kind) ? null : "",
      onchange: event => { event.target.checked ? this.hidden.delete(kind) : this.hidden.add(kind); this.resize(); }}), ` ${label}`);
  }

  tools() {
    const kinds = [...new Set(this.timeline.ranks.flatMap(rank => rank.lanes.map(lane => lane.kind)))];
    const boxes = kinds.map(kind => this.box(kind, LANES[kind].label));
    if (this.timeline.ranks.some(rank => rank.samples.length > 0)) boxes.push(this.box(SAMPLES, "system samples"));
    return element("div", {class: "tools"}, this.select,
      element("button", {onclick: () => this.zoom(0.5, 0.5)}, "zoom in"), element("button", {onclick: () => this.zoom(2, 0.5)}, "zoom out"), boxes);
  }

  show(step) {
    const margin = (step.end - step.start) * 0.01;
    this.from = step.start - margin;
    this.to = step.end + margin;
    this.resize();
  }

  layout() {
    this.lanes = [];
    this.curves = [];  // of system samples
    let top = AXIS_HEIGHT;
    for (const rank of this.timeline.ranks) {
      rank.top = top;
      let named = true;  // at its first lane
      for (const lane of rank.lanes) {
        if (this.hidden.has(lane.kind)) continue;
        this.lanes.push({lane, rank, top, named});
        named = false;
        top += lane.rows * LANE_HEIGHT + LANE_GAP;
      }
      for (const lane of this.hidden.has(SAMPLES) ? [] : rank.samples) {
        this.curves.push({lane, rank, top});
        top += SAMPLE_HEIGHT + LANE_GAP;
      }
      rank.bottom = top;
      top += RANK_GAP;
    }
    return top;
  }

  resize() {
    const all = this.layout(), ratio = window.devicePixelRatio || 1;
    const tallest = Page.printing ? TALLEST : Math.max(300, Math.round(window.innerHeight * 0.8));
    const height = Math.min(all, tallest, Math.floor(TALLEST_CANVAS / ratio));
    this.holder.style.height = `${all}px`;
    this.frame.style.height = `${height + 2}px`;  // with its border
    this.width = Math.max(300, this.frame.clientWidth);
    this.canvas.width = this.width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    this.height = height;
    const {ranks} = this.timeline, whole = ranks.filter(rank => rank.bottom <= height).length;
    this.paper.textContent = whole < ranks.length ? `${whole} of ${ranks.length} ranks` : "";
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.font = FONT;
    this.rankWidth = ranks.reduce((width, rank) => Math.max(width, this.context.measureText(`rank ${rank.rank}`).width + 8), 44);
    this.labelWidth = this.rankWidth + LANE_LABEL_WIDTH;
    this.draw();
  }

  x(time) { return this.labelWidth + (time - this.from) / (this.to - this.from) * (this.width - this.labelWidth); }
  time(x) { return this.from + (x - this.labelWidth) / (this.width - this.labelWidth) * (this.to - this.from); }

  // First event that may still be open at the left edge.
  first(lane) {
    const from = this.from - lane.longest;
    let low = 0, high = lane.events.length / 3;
    while (low < high) { const middle = (low + high) >> 1; lane.events[3 * middle] < from ? low = middle + 1 : high = middle; }
    return low;
  }

  draw() {
    const context = this.context, scrolled = this.frame.scrollTop;
    const seen = (top, height) => top + height > scrolled && top < scrolled + this.height;
    const lanes = this.lanes.filter(one => seen(one.top, one.lane.rows * LANE_HEIGHT)), curves = this.curves.filter(one => seen(one.top, SAMPLE_HEIGHT));
    context.fillStyle = colour("card");
    context.fillRect(0, 0, this.width, this.height);
    context.font = FONT;
    context.textBaseline = "middle";
    this.drawAxis();
    context.save();
    context.beginPath(); context.rect(0, AXIS_HEIGHT, this.width, this.height); context.clip();
    context.translate(0, -scrolled);
    this.drawSteps(this.timeline.ranks.filter(rank => seen(rank.top, rank.bottom - rank.top)));
    for (const {lane, top} of lanes) this.drawLane(lane, top);
    for (const {lane, top} of curves) this.drawCurve(lane, top);
    this.drawLabels(lanes, curves, scrolled);
    context.restore();
    this.keep();
  }

  drawLabels(lanes, curves, scrolled) {
    const context = this.context;
    context.fillStyle = colour("card");
    context.fillRect(0, scrolled, this.labelWidth - 2, this.height);
    context.fillStyle = colour("soft");
    for (const {lane, top} of curves) context.fillText(lane.name, this.rankWidth + 8, top + SAMPLE_HEIGHT / 2, LANE_LABEL_WIDTH - 14);
    for (const {lane, top} of lanes) context.fillText(LANES[lane.kind].label, this.rankWidth + 8, top + LANE_HEIGHT / 2, LANE_LABEL_WIDTH - 14);
    context.fillStyle = colour("ink");
    for (const {rank, top, named} of lanes) if (named) context.fillText(`rank ${rank.rank}`, 6, top + LANE_HEIGHT / 2, this.rankWidth);
  }

  drawAxis() {
    const context = this.context, span = this.to - this.from, raw = span / 8, power = 10 ** Math.floor(Math.log10(raw));
    const gap = [1, 2, 5, 10].map(factor => factor * power).find(value => value >= raw);
    context.fillStyle = colour("soft");
    context.strokeStyle = colour("line");
    let taken = 0;  // by the labels so far
    for (let time = Math.ceil(this.from / gap) * gap; time <= this.to; time += gap) {
      const x = Math.round(this.x(time)) + 0.5;
      if (x < this.labelWidth) continue;
      context.beginPath(); context.moveTo(x, AXIS_HEIGHT); context.lineTo(x, this.height); context.stroke();
      const label = nsText(time) === "0 ns" ? "0" : nsText(time), width = context.measureText(label).width;
      const left = x + 3 + width <= this.width ? x + 3 : x - 3 - width;  // at the right edge it stands on the other side of its line
      if (left < taken) continue;
      context.fillText(label, left, AXIS_HEIGHT / 2);
      taken = left + width + 4;
    }
  }

  drawSteps(ranks) {
    const context = this.context;
    context.strokeStyle = colour("accent");
    for (const rank of ranks) for (const [, start, end] of rank.windows) for (const time of [start, end]) {
      const x = Math.round(this.x(time)) + 0.5;
      if (x < this.labelWidth || x > this.width) continue;
      context.globalAlpha = 0.5;
      context.beginPath(); context.moveTo(x, rank.top - 3); context.lineTo(x, rank.bottom); context.stroke();
      context.globalAlpha = 1;
    }
  }

  drawLane(lane, top) {
    const context = this.context, events = lane.events, fill = colour(LANES[lane.kind].colour), drawn = new Float64Array(DEEPEST).fill(-1);
    for (let i = this.first(lane); i < events.length / 3 && events[3 * i] <= this.to; ++i) {
      const left = Math.max(this.x(events[3 * i]), this.labelWidth), right = Math.min(this.x(events[3 * i] + events[3 * i + 1]), this.width);
      const width = Math.max(right - left, 1), depth = lane.depth[i];
      if (right < this.labelWidth || left + width <= drawn[depth] + 0.5) continue;  // the pixel has its event
      drawn[depth] = left + width;
      const y = top + depth * LANE_HEIGHT;
      const chosen = this.chosen && this.chosen.lane === lane && this.chosen.index === i;
      context.fillStyle = fill;
      context.globalAlpha = chosen ? 1 : 0.86;
      context.fillRect(left, y, width > 3 ? width - 0.6 : width, LANE_HEIGHT - 2);
      context.globalAlpha = 1;
      if (chosen) { context.strokeStyle = colour("ink"); context.strokeRect(left + 0.5, y + 0.5, width - 1, LANE_HEIGHT - 3); }
      if (width > 34) this.drawName(this.timeline.names[events[3 * i + 2]], left, y, width);
    }
  }

  // A sample is of the time since the one before it.
  drawCurve(lane, top) {
    const context = this.context, {points, full} = lane, starts = new Set(lane.starts);
    context.strokeStyle = colour("line");
    context.strokeRect(this.labelWidth + 0.5, top + 0.5, this.width - this.labelWidth - 1, SAMPLE_HEIGHT - 1);
    context.fillStyle = colour("accent");
    for (let i = 0; i + 1 < points.length; i += 2) {
      const before = starts.has(i / 2) ? points[i] : points[i - 2];  // nothing is known between two recordings
      const left = Math.max(this.x(before), this.labelWidth), right = Math.min(this.x(points[i]), this.width);
      if (right < left) continue;
      const height = full > 0 ? points[i + 1] / full * (SAMPLE_HEIGHT - 2) : 0;
      context.fillRect(left, top + SAMPLE_HEIGHT - 1 - height, Math.max(right - left, 1), height);
    }
  }

  drawName(name, left, y, width) {
    const context = this.context, room = Math.floor((width - 6) / 6);
    context.fillStyle = "#fff";
    context.fillText(name.length > room ? `${name.slice(0, room - 1)}…` : name, left + 3, y + LANE_HEIGHT / 2 - 0.5);
  }

  zoom(factor, at) {
    const centre = this.from + at * (this.to - this.from), span = Math.min(Math.max((this.to - this.from) * factor, 100), 4 * this.timeline.length_ns);
    this.from = centre - at * span;
    this.to = this.from + span;
    this.draw();
  }
  pan(share) { const shift = share * (this.to - this.from); this.from += shift; this.to += shift; this.draw(); }

  // The event, or sample, at this place of the canvas.
  at(x, shown) {
    const time = this.time(x), slack = (this.to - this.from) / (this.width - this.labelWidth) * 2, y = shown + this.frame.scrollTop;
    if (shown < AXIS_HEIGHT) return null;
    for (const {lane, rank, top} of this.lanes) {
      const depth = Math.floor((y - top) / LANE_HEIGHT);
      if (y < top || depth >= lane.rows) continue;
      let best = null;
      for (let i = this.first(lane); i < lane.events.length / 3 && lane.events[3 * i] <= time + slack; ++i) {
        const start = lane.events[3 * i], end = start + lane.events[3 * i + 1];
        if (lane.depth[i] === depth && start - slack <= time && time <= end + slack) best = {lane, rank, index: i};
      }
      if (best) return best;
    }
    return this.sampleAt(time, y, slack);
  }

  sampleAt(time, y, slack) {
    const found = this.curves.find(one => one.top <= y && y < one.top + SAMPLE_HEIGHT);
    if (!found) return null;
    const {points, starts} = found.lane;
    for (let i = 0; i + 1 < points.length; i += 2)
      if (points[i] >= time) return starts.includes(i / 2) && points[i] > time + slack ? null : {sample: points[i + 1], lane: found.lane, rank: found.rank};
    return null;
  }

  // First event that has not ended at the left edge; the last one where all have. A long event anywhere in the lane has first() begin early.
  firstOpen(lane) {
    const {events} = lane, last = events.length / 3 - 1;
    let index = Math.min(this.first(lane), last);
    while (index < last && events[3 * index] + events[3 * index + 1] < this.from) ++index;
    return index;
  }

  // The next event of the lane, or the one before; without a chosen one the first of the first lane that is seen.
  step(by) {
    const last = this.chosen && this.chosen.index !== undefined && !this.hidden.has(this.chosen.lane.kind) ? this.chosen : null;
    const {lane, rank} = last || this.lanes.find(one => one.top >= this.frame.scrollTop) || {};
    if (!lane) return;
    const index = last ? Math.min(Math.max(last.index + by, 0), lane.events.length / 3 - 1) : this.firstOpen(lane);
    const start = lane.events[3 * index], span = this.to - this.from;
    if (start < this.from || start > this.to) { this.from = start - span / 10; this.to = this.from + span; }
    this.choose({lane, rank, index});
  }

  choose(chosen) {
    this.chosen = chosen;
    if (chosen && chosen.sample !== undefined) {
      this.detail.replaceChildren(element("b", {}, chosen.lane.name), element("br"),
        `rank ${chosen.rank.rank}: ${numberText(chosen.sample)} (scale: 0 to ${numberText(chosen.lane.full)})`);
    } else if (chosen) {
      const [start, length, name] = chosen.lane.events.slice(3 * chosen.index, 3 * chosen.index + 3);
      const window = chosen.rank.windows.find(one => one[1] <= start && start < one[2]);
      this.detail.replaceChildren(element("b", {}, this.timeline.names[name]), element("br"),
        `rank ${chosen.rank.rank}, ${LANES[chosen.lane.kind].label}` + (window && window[0] !== null ? `, step ${window[0]}` : "") +
        `: ${nsText(length)} from ${nsText(start)}` + (window ? `, ${percentText(length / (window[2] - window[1]))} of its step` : ""));
    } else this.detail.textContent = "Nothing there.";
    this.draw();
  }

  listen() {
    let pressed = null;
    const place = event => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.frame.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("wheel", event => {
      if (event.shiftKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, (place(event)[0] - this.labelWidth) / (this.width - this.labelWidth)));
    }, {passive: false});
    this.canvas.addEventListener("pointerdown", event => { pressed = {x: event.clientX, y: event.clientY, moved: false}; this.canvas.setPointerCapture(event.pointerId); });
    this.canvas.addEventListener("pointermove", event => {
      if (!pressed) return;
      const shift = event.clientX - pressed.x, down = event.clientY - pressed.y;
      if (!pressed.moved && Math.abs(shift) < 4 && Math.abs(down) < 4) return;
      pressed = {x: event.clientX, y: event.clientY, moved: true};
      this.frame.scrollTop -= down;
      this.pan(-shift / (this.width - this.labelWidth));
    });
    this.canvas.addEventListener("pointerup", event => {
      if (pressed && !pressed.moved) this.choose(this.at(...place(event)));
      pressed = null;
    });
    this.canvas.addEventListener("keydown", event => {
      const act = {"+": () => this.zoom(0.7, 0.5), "-": () => this.zoom(1.4, 0.5),
        ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15), n: () => this.step(1), p: () => this.step(-1)}[event.key];
      if (act && !event.ctrlKey && !event.metaKey) { event.preventDefault(); act(); }
    });
    new ResizeObserver(() => { if (this.frame.isConnected && this.frame.clientWidth !== this.width) this.resize(); }).observe(this.frame);
  }
}

const LANES = {
  compute: {label: "compute", colour: "compute"}, communication: {label: "communic.", colour: "comm"},
  copies: {label: "copies", colour: "copies"}, data: {label: "data", colour: "data"}, ranges: {label: "ranges", colour: "ranges"},
  operators: {label: "operators", colour: "operators"}, calls: {label: "host calls", colour: "host"}, locks: {label: "locks", colour: "lock"},
};
