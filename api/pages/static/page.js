"use strict";

// Selects every row of a list, or none.
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-select-all]")) return;
  for (const box of event.target.form.querySelectorAll('input[name="selected"]')) {
    box.checked = event.target.checked;
  }
});

// Writes what the server offers for a field into that field.
document.addEventListener("click", (event) => {
  if (!event.target.matches("[data-use]")) return;
  const field = document.getElementsByName(event.target.dataset.into)[0];
  field.value = event.target.dataset.use;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
});

// Parts that are loaded again and again wait while nobody looks, and while somebody works in them.
document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (part.id === "live" && (document.hidden || part.contains(document.activeElement))) {
    event.preventDefault();
  }
});
