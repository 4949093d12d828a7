// Light or dark as on Carrel's other pages, before the first paint; what scrolls takes the focus.
"use strict";
(() => {
  const CARREL = "jupyterhub-bs-theme";
  const FURO = "theme";
  const body = document.body;
  try {
    localStorage.setItem(FURO, localStorage.getItem(CARREL) || "auto");
    body.dataset.theme = localStorage.getItem(FURO);
    new MutationObserver(() => {
      if (body.dataset.theme === "auto") localStorage.removeItem(CARREL);
      else localStorage.setItem(CARREL, body.dataset.theme);
    }).observe(body, { attributeFilter: ["data-theme"] });
  } catch {
    body.dataset.theme = "auto"; // the browser stores nothing
  }
  const focusable = () => {
    for (const box of document.querySelectorAll("pre, .table-wrapper")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    }
  };
  document.addEventListener("DOMContentLoaded", focusable);
  addEventListener("resize", focusable);
})();
