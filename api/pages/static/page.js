"use strict";

// Selects every row of a list, or none.
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-select-all]")) return;
  for (const box of event.target.form.querySelectorAll('input[name="selected"]')) {
    box.checked = event.target.checked;
  }
});

// All that a filter finds is changed page by page.
for (const form of document.querySelectorAll("form[data-go-on]")) form.submit();

// Writes what the server offers for a field into that field.
document.addEventListener("click", (event) => {
  if (!event.target.matches("[data-use]")) return;
  const field = document.getElementsByName(event.target.dataset.into)[0];
  field.value = event.target.dataset.use;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
});

// The server shows times in the zone that the browser tells it. A browser's first page was made before it told
// one, and is loaded again: parts of it that come later would be in another zone than the rest.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const told = () => document.cookie.includes("scheduler_zone=");
const wasTold = told();
if (zone) document.cookie = `scheduler_zone=${zone}; path=/; max-age=31536000; samesite=strict`;
if (!wasTold && told() && document.documentElement.dataset.zone !== zone) location.reload();

// The zone of whoever looks at the page is offered beside a field for a zone while that says another one.
for (const button of document.querySelectorAll("[data-own-zone]")) {
  const field = document.getElementsByName(button.dataset.into)[0];
  const offer = () => { button.parentElement.hidden = !zone || field.value === zone; };
  button.dataset.use = zone;
  button.textContent = `Use ${zone}`;
  field.addEventListener("input", offer);
  offer();
}

document.addEventListener("click", (event) => {
  if (!event.target.matches("[data-copy]")) return;
  const text = document.querySelector(`[data-test="${event.target.dataset.copy}"]`).innerText;
  navigator.clipboard.writeText(text).then(() => { event.target.textContent = "Copied"; });
});

// What was picked is written into its field at once. (When the browser goes back, the event has no detail.target.)
document.addEventListener("htmx:afterSwap", (event) => {
  for (const picked of (event.detail.target ?? event.target).querySelectorAll("[data-write]")) {
    const field = document.getElementsByName(picked.dataset.into)[0];
    field.value = picked.dataset.write;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
});

// Parts that are loaded again and again wait while nobody looks, while somebody works in them or has selected
// rows, and while they are paused. They say what they have, so that the server need not send the same again.
let paused = false;
let shown = "";
document.addEventListener("click", (event) => {
  if (!event.target.matches("[data-pause]")) return;
  paused = !paused;
  event.target.setAttribute("aria-pressed", String(paused));
  event.target.textContent = paused ? "Go on updating" : "Pause updates";
});
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (part.id !== "live") return;
  const beside = part.getAttribute("hx-select-oob");
  const at = document.activeElement;
  const isUsed = (each) =>
    each.querySelector('details[open], input[name="selected"]:checked') || (each.contains(at) && !at.matches("[data-pause]"));
  if (paused || document.hidden || [part, ...(beside ? document.querySelectorAll(beside) : [])].some(isUsed)) {
    event.preventDefault();
  }
});
document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.elt.id === "live" && shown) event.detail.headers["If-None-Match"] = shown;
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.elt.id === "live") shown = event.detail.xhr.getResponseHeader("ETag") || shown;
});

// Ctrl-K opens the search; Enter goes to the first place that was found.
const go = document.getElementById("go");
if (go) {
  go.querySelector("form").addEventListener("submit", (event) => {
    const first = go.querySelector("#found a");
    if (first) {
      event.preventDefault();
      location.assign(first.href);
    }
  });
}

// Keys, none of which but those with Ctrl works while somebody types. Those of KEYS are done here; every other one
// presses what names it in `data-keys`: in the form that has the focus, or on the page, where the list of keys has
// the links. `pages/places.py` is that list.
let at = -1;
function mark(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  at = Math.min(Math.max(at + step, 0), rows.length - 1);
  for (const row of rows) row.classList.toggle("at", row === rows[at]);
  rows[at].querySelector("[data-open]")?.focus();
}
function openFilter() {
  const filter = document.querySelector("[data-search], .filters input");
  if (filter) filter.focus();
  else go?.togglePopover(true);
}
const KEYS = {
  "Ctrl K": () => go?.togglePopover(true),
  "/": openFilter,
  "?": () => document.getElementById("keys")?.togglePopover(),
  "j": () => mark(1),
  "k": () => mark(-1),
  "x": () => document.querySelector('.at input[type="checkbox"]')?.click(),
};
const TYPED_IN = 'input:not([type="checkbox"], [type="radio"]), textarea, select';
const FIRST_KEY_MS = 1500;
let first = -Infinity; // when `g` was pressed, after which another key follows
document.addEventListener("keydown", (event) => {
  const ctrl = event.ctrlKey || event.metaKey;
  if (event.altKey || event.isComposing || (!ctrl && event.target.matches(TYPED_IN))) return;
  let pressed = event.key;
  if (ctrl) pressed = `Ctrl ${event.shiftKey ? "Shift " : ""}${pressed.length === 1 ? pressed.toUpperCase() : pressed}`;
  else if (event.timeStamp - first < FIRST_KEY_MS) pressed = `g ${pressed}`;
  first = pressed === "g" ? event.timeStamp : -Infinity;
  let act = KEYS[pressed];
  if (!act) {
    // Of a list's rows only the marked one is meant; and what is behind an open search is not pressed from it.
    const page = ctrl && event.target.closest("[popover]") ? null : document;
    const named = [event.target.closest("form"), page]
      .flatMap((each) => (each ? [...each.querySelectorAll("[data-keys]")] : []))
      .find((each) => each.dataset.keys === pressed && (!each.closest("[data-row]") || each.closest(".at")));
    if (!named) return;
    act = () => named.click();
  }
  event.preventDefault();
  act();
});

// A page stays as it is when the server or the network is gone: then it says so, until the server answers again.
const ASK_MS = 5000;
let lastAnswer = new Date();
const gone = { server: false, part: false };
function showGone() {
  const isGone = gone.server || gone.part;
  let said = document.querySelector('[data-test="gone"]');
  document.body.classList.toggle("stale", isGone);
  if (!isGone) {
    said?.remove();
    return;
  }
  if (said) return;
  said = document.createElement("p");
  said.className = "banner";
  said.dataset.test = "gone";
  said.setAttribute("role", "alert");
  said.textContent = `The server does not answer. This page shows what it was at ${instant(lastAnswer)}.`;
  document.getElementById("content").prepend(said);
}
/* As the server writes it (`times.py`). */
function instant(moment) {
  const shown = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  const timeZone = document.documentElement.dataset.zone;
  return new Intl.DateTimeFormat("en-GB", { ...shown, second: "2-digit", timeZone }).format(moment).replaceAll(",", "");
}
async function askServer() {
  if (document.hidden) return;
  try {
    gone.server = !(await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(ASK_MS) })).ok;
  } catch {
    gone.server = true;
  }
  if (paused) gone.part = false; // nothing is asked for it
  if (!gone.server && !gone.part) lastAnswer = new Date();
  showGone();
}
setInterval(askServer, ASK_MS);
for (const name of ["online", "offline"]) addEventListener(name, askServer);
document.addEventListener("visibilitychange", askServer);
// The part that is loaded again and again fails also where MongoDB alone is away. (A request that the browser
// itself ends, because the person leaves the page, has the status 0 and is no error.)
for (const name of ["htmx:sendError", "htmx:afterRequest"]) {
  document.addEventListener(name, (event) => {
    const status = event.detail.xhr.status;
    if (event.detail.elt.id !== "live" || (status === 0 && name !== "htmx:sendError")) return;
    gone.part = status === 0 || status >= 500;
    showGone();
  });
}
