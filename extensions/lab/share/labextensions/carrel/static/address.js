// Opens what the address names: an assignment, or the output of a job and a cell of it. The buttons
// "Open in JupyterLab" of the site's pages lead to such addresses (hub/web/forms/lab_target.py).
import { openOutput } from "./job_output.js";

const NAMES = ["carrel-course", "carrel-assignment", "carrel-job", "carrel-cell"];

// Read what the query of an address names.
export const readAddress = (search) => {
  const query = new URLSearchParams(search);
  const [course, assignment, job, cell] = NAMES.map((name) => query.get(name) || "");
  return { course, assignment, job, cell: Number.parseInt(cell, 10) || 0 };
};

// A reload shall not copy again.
const clean = () => {
  const url = new URL(window.location.href);
  for (const name of NAMES) url.searchParams.delete(name);
  window.history.replaceState(window.history.state, "", url);
};

export const openAddress = async ({ course, assignment, job, cell }, libraries, site, app, coursework) => {
  if (!job && !(course && assignment)) return;
  clean();
  if (job) await openOutput(libraries, site, app, job, cell);
  else await coursework.fetch(course, assignment, true);
};
