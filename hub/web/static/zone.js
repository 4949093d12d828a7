// Times that people type are read in the zone in which they are shown. Loaded before the page: a
// form may be sent before what comes after it is there.
"use strict";
(() => {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const name = () => {
    // One that was chosen before stays.
    for (const field of document.querySelectorAll("[data-zone]")) field.value ||= timeZone;
  };
  document.addEventListener("DOMContentLoaded", name);
  document.addEventListener("submit", name, { capture: true });
  document.addEventListener("htmx:afterSwap", name);
})();
