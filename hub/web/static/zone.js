// Fill in the time zone of forms, so that times are read in the zone in which they are shown.
// Loaded before the page: a form may be submitted before the page is complete.
"use strict";
(() => {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const fill = () => {
    // Keep a zone that is already set.
    for (const field of document.querySelectorAll("[data-zone]")) field.value ||= timeZone;
  };
  document.addEventListener("DOMContentLoaded", fill);
  document.addEventListener("submit", fill, { capture: true });
  document.addEventListener("htmx:afterSwap", fill);
})();
