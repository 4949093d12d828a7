// Opens what the address names: an assignment, or the output of a job and a cell of it. The buttons
// "Open in JupyterLab" of the site's pages lead to such addresses (hub/web/forms/lab_target.py).
const NAMES = ["carrel-course", "carrel-assignment", "carrel-job", "carrel-cell"];

// Read what the address names; call it before the application changes the address.
export const readAddress = () => {
  const query = new URLSearchParams(window.location.search);
  const [course, assignment, job, cell] = NAMES.map((name) => query.get(name) || "");
  return { course, assignment, job, cell: Number.parseInt(cell, 10) || 0 };
};

// A reload shall not copy again.
const clean = () => {
  const url = new URL(window.location.href);
  for (const name of NAMES) url.searchParams.delete(name);
  window.history.replaceState(window.history.state, "", url);
};

export const openAddress = async ({ course, assignment, job, cell }, site, coursework, Notification) => {
  if (!job && !(course && assignment)) return;
  clean();
  if (!job) {
    await coursework.fetch(course, assignment, true);
    return;
  }
  const copied = await site.act("copy-output", { job });
  Notification.info(
    copied.is_new ? `The output of ${job} was copied to ${copied.path}.` : `The output of ${job} is ${copied.path}.`,
    { autoClose: 10000 },
  );
  const panel = await coursework.openPath(copied.path);
  if (panel && cell) await show(panel, cell);
};

// Scroll to a code cell by its number; pages do not count the cell with the injected parameters.
const show = async (panel, number) => {
  await panel.context.ready;
  await panel.revealed;
  const tags = (cell) => (cell.model.getMetadata("tags") || []);
  const isCounted = (cell) => cell.model.type === "code" && !tags(cell).includes("injected-parameters");
  const cells = panel.content.widgets.map((cell, at) => [cell, at]).filter(([cell]) => isCounted(cell));
  if (!cells[number - 1]) return;
  const [, at] = cells[number - 1];
  panel.content.activeCellIndex = at;
  await panel.content.scrollToItem(at, "center");
};
