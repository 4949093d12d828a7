// Keys of the page on which a person gives points. The page works without this file.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const cells = document.querySelector("[data-manual]");
  const frame = document.getElementById("graded-notebook");
  if (!cells) return;
  const forms = [...cells.querySelectorAll("form[data-cell]")];
  const changed = (form) => "unsaved" in form.dataset
    || [...form.elements].some((field) => field.type !== "hidden" && field.value !== field.defaultValue
      && field.defaultValue !== undefined);
  let leaving = false;

  // One-letter keys disturb people who dictate: they can be switched off.
  const keys = document.getElementById("keys");
  keys.checked = localStorage.getItem("carrel-manual-keys") !== "off";
  keys.addEventListener("change", () => {
    localStorage.setItem("carrel-manual-keys", keys.checked ? "on" : "off");
  });

  const warn = () => {
    const unsaved = forms.find(changed);
    document.getElementById("unsaved").hidden = !unsaved;
    return Boolean(unsaved);
  };
  const go = (id) => {
    const link = document.getElementById(id);
    if (link && !warn()) link.click();
    return Boolean(link);
  };
  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    const form = target.closest?.("form[data-cell]");
    if (key === "Enter" && (event.ctrlKey || event.metaKey) && form) {
      event.preventDefault();
      form.requestSubmit();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (key === "Escape" && form) {
      delete form.dataset.unsaved;
      form.reset();
      warn();
      return;
    }
    const points = target.matches?.("[data-points]");
    const writes = target.matches?.("input:not([type=checkbox]), textarea, select");
    if (!keys.checked || (writes && !points)) return;
    const id = { n: "after", p: "before", ...(points ? {} : { ArrowRight: "after", ArrowLeft: "before" }) }[key];
    if (id && go(id)) event.preventDefault();
  });

  // The notebook follows the cell that has the focus.
  let shown = frame && frame.getAttribute("src");
  cells.addEventListener("focusin", ({ target }) => {
    const at = target.closest("form[data-cell]")?.dataset.at;
    if (!frame || !at || at === shown) return;
    shown = at;
    frame.contentWindow.location.replace(new URL(at, window.location.href));
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-cell]")) leaving = true;
  });
  window.addEventListener("beforeunload", (event) => {
    if (!leaving && forms.some(changed)) event.preventDefault();
  });

  const first = cells.querySelector("[data-focus]");
  // On a phone the keyboard would cover the notebook.
  if (first && window.matchMedia("(pointer: fine)").matches) {
    first.closest("details")?.setAttribute("open", "");
    first.focus();
    first.select(); // What is typed replaces what is there.
  }
});
