// Opens what the address names: an assignment, the output of a job and a cell of it, or the material
// of a link. Buttons of the site's pages lead to such addresses (hub/web/forms/lab_target.py,
// hub/web/pages/open_link.py).
import { openOutput } from "./job_output.js";
import { openMaterial } from "./material.js";

const NAMES = ["carrel-course", "carrel-assignment", "carrel-job", "carrel-cell", "carrel-open"];

// Read what the query of an address names.
export const readAddress = (search) => {
  const query = new URLSearchParams(search);
  const [course, assignment, job, cell, ticket] = NAMES.map((name) => query.get(name) || "");
  return { course, assignment, job, cell: Number.parseInt(cell, 10) || 0, ticket };
};

// A reload shall not copy again.
const clean = () => {
  const url = new URL(window.location.href);
  for (const name of NAMES) url.searchParams.delete(name);
  window.history.replaceState(window.history.state, "", url);
};

export const openAddress = async ({ course, assignment, job, cell, ticket }, libraries, site, app, coursework) => {
  if (!ticket && !job && !(course && assignment)) return;
  clean();
  if (ticket) await openMaterial(libraries, site, app, coursework.documents, ticket);
  else if (job) await openOutput(libraries, site, app, job, cell);
  else await coursework.fetch(course, assignment, true);
};
