// Fill in the time zone of forms, so that times are read in the zone in which they are shown, and
// offer the names of the zones that the browser knows.
// Loaded before the page: a form may be submitted before the page is complete.
"use strict";
(() => {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const fill = () => {
    // Keep a zone that is already set.
    for (const field of document.querySelectorAll("[data-zone]")) field.value ||= timeZone;
    if (!document.querySelector("[list=zones]") || document.getElementById("zones")) return;
    const list = document.createElement("datalist");
    list.id = "zones";
    const names = Intl.supportedValuesOf?.("timeZone") ?? [timeZone];
    list.append(...["UTC", ...names].map((name) => new Option(name, name)));
    document.body.append(list);
  };
  document.addEventListener("DOMContentLoaded", fill);
  document.addEventListener("submit", fill, { capture: true });
  document.addEventListener("htmx:afterSwap", fill);
})();
