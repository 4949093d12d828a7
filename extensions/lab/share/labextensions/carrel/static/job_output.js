// Opens the output of a job, copied into the home, at a cell of it.
import { openDocument } from "./documents.js";

// `cell` is the number of a code cell as pages show it; 0 for none.
export const openOutput = async ({ apputils: { Notification } }, site, app, job, cell) => {
  const copied = await site.act("copy-output", { job });
  const text = copied.is_new ? `The output of ${job} was copied to ${copied.path}.` : `The output of ${job} is ${copied.path}.`;
  Notification.info(text, { autoClose: 10000 });
  const panel = await openDocument(app, copied.path);
  if (panel && cell) await show(panel, cell);
};

// Scroll to a code cell; pages do not count the cell with the injected parameters.
const show = async (panel, number) => {
  await panel.context.ready;
  await panel.revealed;
  const tags = (cell) => cell.model.getMetadata("tags") || [];
  const isCounted = (cell) => cell.model.type === "code" && !tags(cell).includes("injected-parameters");
  const cells = panel.content.widgets.map((cell, at) => [cell, at]).filter(([cell]) => isCounted(cell));
  if (!cells[number - 1]) return;
  const [, at] = cells[number - 1];
  panel.content.activeCellIndex = at;
  await panel.content.scrollToItem(at, "center");
};
