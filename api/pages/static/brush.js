"use strict";

// A part of a chart is chosen by dragging over it: its times are written into the form that the chart names,
// which loads the chart and the table of that part.
let brush = null;

// A pointer's place in the units of the drawing, within the plot.
function placeOf(event, chart) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
  return Math.min(Math.max(at.x, Number(chart.dataset.left)), Number(chart.dataset.right));
}

function instantAt(place, chart) {
  const { left, right, since, until } = chart.dataset;
  const share = (place - left) / (right - left);
  return Number(since) + share * (until - since);
}

function written(seconds) {
  return new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");
}

document.addEventListener("pointerdown", (event) => {
  const chart = event.target.closest("[data-brush]");
  if (chart && event.button === 0) brush = { chart, from: placeOf(event, chart), to: null };
});

document.addEventListener("pointermove", (event) => {
  if (!brush) return;
  const to = placeOf(event, brush.chart);
  if (Math.abs(to - brush.from) < 4) return;
  brush.to = to;
  const band = brush.chart.querySelector(".brush");
  band.setAttribute("x", String(Math.min(brush.from, to)));
  band.setAttribute("width", String(Math.abs(to - brush.from)));
});

document.addEventListener("pointerup", () => {
  const done = brush;
  brush = null;
  if (!done || done.to === null) return;
  // The dot under the pointer is not followed.
  const keep = (event) => event.preventDefault();
  addEventListener("click", keep, { capture: true });
  setTimeout(() => {
    removeEventListener("click", keep, { capture: true });
    const form = document.getElementById(done.chart.dataset.brush);
    const [first, last] = [done.from, done.to].sort((a, b) => a - b).map((place) => instantAt(place, done.chart));
    form.elements.namedItem("from").value = written(Math.floor(first));
    form.elements.namedItem("to").value = written(Math.ceil(last) + 1);
    form.requestSubmit();
  });
});

// The chart is not loaded again under the pointer.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (brush && event.detail.elt.id === "live") event.preventDefault();
});
document.addEventListener("pointercancel", () => { brush = null; });
document.addEventListener("dragstart", (event) => { if (brush) event.preventDefault(); });
