"use strict";

// The picker follows what is written in "When", as far as it can show it; the server tells its fields.
document.addEventListener("htmx:afterSwap", (event) => {
  const found = (event.detail.target ?? event.target).querySelector("[data-picks]");
  const picker = document.querySelector(".picker");
  if (!found || !picker || picker.contains(document.activeElement)) return;
  const fields = JSON.parse(found.dataset.picks);
  document.getElementById("not-shown").hidden = fields !== null;
  for (const [name, value] of Object.entries(fields ?? {})) {
    for (const field of picker.querySelectorAll(`[name="${name}"]`)) {
      if (field.type === "checkbox") field.checked = value.includes(field.value);
      else field.value = value;
    }
  }
});
