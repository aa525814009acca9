// Reads a calendar with ical.js. Arguments: the folder of node_modules, the file, the end (exclusive), the most
// occurrences of one event. Prints JSON: by UID, the instants of its occurrences.
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");

const [folder, file, end, most] = process.argv.slice(2);
const ICAL = createRequire(`${folder}/`)("ical.js");
const calendar = new ICAL.Component(ICAL.parse(readFileSync(file, "utf8")));
for (const zone of calendar.getAllSubcomponents("vtimezone")) {
  ICAL.TimezoneService.register(zone);
}
const last = Date.parse(end);
const found = {};
for (const component of calendar.getAllSubcomponents("vevent")) {
  const event = new ICAL.Event(component);
  const times = (found[event.uid] ??= []);
  const add = (time) => {
    const instant = time.toJSDate();
    if (instant.getTime() >= last) return false;
    times.push(instant.toISOString());
    return times.length < Number(most);
  };
  if (!event.isRecurring()) {
    add(event.startDate);
    continue;
  }
  const iterator = event.iterator();
  for (let next = iterator.next(); next && add(next); next = iterator.next());
}
console.log(JSON.stringify(found));
