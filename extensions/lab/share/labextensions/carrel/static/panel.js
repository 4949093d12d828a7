// The content of the panel in the side bar: this session, other sessions, jobs and assignments.
import { COMMANDS } from "./commands.js";
import { keyOf } from "./desk_state.js";
import { left } from "./site.js";

export const panelContent = (libraries, { site, desk, coursework }, { app, tracker, panel }) => {
  const { ReactWidget, UseSignal } = libraries.ui;
  const { createElement: h } = libraries.react;
  const { commands } = app;

  // `hidden` completes the text for screen readers, which read buttons without the row around them.
  const hiddenText = (hidden) => hidden && h("span", { className: "carrel-hidden" }, ` ${hidden}`);
  const button = (label, command, args = {}, hidden = "", disabled = false) => {
    const onClick = () => void commands.execute(command, args);
    return h("button", { type: "button", className: "jp-mod-styled carrel-button", disabled, onClick }, label, hiddenText(hidden));
  };
  const link = (label, url, hidden = "") =>
    h("a", { href: url, target: "_blank", rel: "noopener" }, label, hiddenText(hidden));
  const section = (id, title, ...children) =>
    h("section", { "aria-labelledby": `carrel-${id}`, key: id }, h("h2", { id: `carrel-${id}` }, title), ...children);
  const note = (text, key) => h("p", { className: "carrel-note", key }, text);
  const problem = (part) => desk.problems[part] && h("p", { className: "carrel-problem", role: "alert" }, desk.problems[part]);

  const ends = (session) => (session.ends_by === null ? session.sentence : `${left(desk.until(session.ends_by))} left`);

  const here = () => {
    const { session } = desk;
    if (!session) return section("here", "This session", problem("requests") || note("Loading…"));
    return section(
      "here",
      "This session",
      h("p", null, h("strong", null, session.devices), ` · ${ends(session)}`),
      note(`${session.title}, ${session.state}`),
      h(
        "div",
        { className: "carrel-actions" },
        button(`Extend ${desk.summary.extension}`, COMMANDS.extend),
        button("Stop…", COMMANDS.stop),
      ),
      problem("requests"),
    );
  };

  const others = () => {
    const found = desk.summary ? desk.summary.sessions.filter((each) => !each.here) : [];
    if (!found.length) return null;
    const row = (each) =>
      h(
        "li",
        { key: each.id },
        h("p", null, link(each.title, site.waitPage(each.server_name)), ` · ${each.devices}`),
        note(each.place === null ? `${each.state}, ${ends(each)}` : each.sentence),
      );
    return section("others", "Other sessions", h("ul", null, found.map(row)));
  };

  const job = (each) =>
    h(
      "li",
      { key: each.id },
      h("p", null, link(each.title, site.requestPage(each.id), each.id)),
      note(each.sentence),
      each.has_output &&
        h("div", { className: "carrel-actions" }, button("Open output", COMMANDS.output, { job: each.id }, `of ${each.id}`)),
    );

  const jobs = () => {
    const found = desk.summary ? desk.summary.jobs : [];
    const isOpen = Boolean(tracker && tracker.currentWidget);
    return section(
      "jobs",
      "Jobs",
      h("div", { className: "carrel-actions" }, button("Run this notebook as a job…", COMMANDS.submit, {}, "", !isOpen)),
      !isOpen && note("Open a notebook to submit it."),
      found.length ? h("ul", null, found.map(job)) : note("You have no jobs."),
    );
  };

  const result = (check) => {
    const several = new Set(check.cells.map((cell) => cell.notebook)).size > 1;
    const name = (cell) => (several ? `${cell.notebook}/${cell.cell}` : cell.cell);
    return h(
      "details",
      { className: "carrel-check", open: true, key: "check" },
      h("summary", { "aria-live": "polite" }, `Check: ${check.sentence}`),
      check.cells.length > 0 &&
        h(
          "ul",
          null,
          check.cells.map((cell) =>
            h("li", { key: name(cell) }, h("strong", null, `${name(cell)}: ${cell.word}`), cell.sentence && ` ${cell.sentence}`),
          ),
        ),
      check.notes.map((text) => note(text, text)),
      check.ended && check.passed !== null && note("This result does not count. Grading may have hidden tests."),
    );
  };

  const officialResult = (check) =>
    h(
      "details",
      { className: "carrel-check", open: true, key: "official" },
      h("summary", { "aria-live": "polite" }, `Official check: ${check.sentence}`),
      check.cells.length > 0 &&
        h(
          "ul",
          null,
          check.cells.map((cell) =>
            h("li", { key: `${cell.notebook}/${cell.cell}` }, h("strong", null, `${cell.cell}: ${cell.passed ? "passed" : "not passed"}`)),
          ),
        ),
    );

  // The button with the number of runs left, where the teacher allows official checks.
  const officialButton = ({ official, folder }, which) =>
    official &&
    official.per_day > 0 &&
    button(`Official check (${official.left} left today)`, COMMANDS.official, { path: folder }, which, official.left === 0);

  const due = (each) => {
    if (each.due === null) return "";
    const date = new Date(each.due * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    const seconds = desk.until(each.due);
    return seconds > 0 && seconds < 2 * 86400 ? `Due ${date} (in ${left(seconds)}). ` : `Due ${date}. `;
  };

  const assignment = (each) => {
    const { course, name, folder } = each;
    const which = `${name} of ${course}`;
    const check = desk.checks.get(keyOf(course, name));
    const official = desk.officials.get(keyOf(course, name)) || (each.official && each.official.checks[0]);
    return h(
      "li",
      { key: keyOf(course, name) },
      h("p", null, link(name, coursework.page(course, name)), ` · ${course} · ${each.state}`, each.points && ` · ${each.points}`),
      note(due(each) + (each.receipt ? each.receipt.sentence : each.sentence)),
      h(
        "div",
        { className: "carrel-actions" },
        folder && button("Open", COMMANDS.fetch, { course, assignment: name, missing: true }, which),
        (!folder || each.newer) &&
          button(folder ? "Fetch the newer version" : "Fetch", COMMANDS.fetch, { course, assignment: name }, which),
        folder && button("Check", COMMANDS.check, { path: folder }, which),
        folder && officialButton(each, which),
        folder && button("Hand in", COMMANDS.handIn, { path: folder }, which),
      ),
      check && result(check),
      official && officialResult(official),
    );
  };

  const assignments = () => {
    const { courses } = desk;
    if (!courses) return problem("courses") && section("assignments", "Assignments", problem("courses"));
    const { assignments: found, teaches } = courses;
    return section(
      "assignments",
      "Assignments",
      problem("courses"),
      found.length ? h("ul", null, found.map(assignment)) : !teaches.length && note("No assignment has been released to you."),
      teaches.length > 0 &&
        h(
          "p",
          null,
          "You teach or grade ",
          teaches.map((course, at) => [at ? ", " : "", link(course, site.servicePage(`course/${encodeURIComponent(course)}`))]),
          ".",
        ),
    );
  };

  const draw = () =>
    h(
      "div",
      { className: "carrel-panel-content" },
      here(),
      assignments(),
      jobs(),
      others(),
      h("p", { className: "carrel-links" }, link("My desk", site.page("hub/home")), " · ", link("Help", site.servicePage("help/"))),
    );

  desk.isShown = () => panel.isVisible;
  // What is shown first is read at once.
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) desk.refresh();
  }).observe(panel.node);
  if (tracker) tracker.currentChanged.connect(() => desk.changed.emit());
  return ReactWidget.create(h(UseSignal, { signal: desk.changed }, draw));
};
