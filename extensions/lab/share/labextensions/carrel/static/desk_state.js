// What the panel, the status item and the commands know: the user's sessions, jobs and assignments.
//
// It is read from the session's server while the page is visible: requests often, assignments only
// while the panel shows them and after an action.
import { opens } from "./site.js";

const REQUESTS_MS = 15_000;
const COURSES_MS = 60_000;
const CHECK_MS = 2_000;
const SLOWEST_MS = 120_000;

export const keyOf = (course, assignment) => `${course}/${assignment}`;

export class DeskState {
  constructor({ polling: { Poll }, signaling: { Signal }, apputils: { Notification } }, site) {
    this.site = site;
    this.Notification = Notification;
    this.changed = new Signal(this);
    this.summary = null;
    this.courses = null;
    // Sentences of failed reads, by what was read.
    this.problems = {};
    // The newest check of each assignment that was checked or shown here.
    this.checks = new Map();
    this.officials = new Map();
    this.isShown = () => false;
    this.skew = 0;
    const poll = (name, factory, interval, standby) =>
      new Poll({ auto: false, name, factory, standby, frequency: { interval, backoff: true, max: SLOWEST_MS } });
    this.requestsPoll = poll("carrel:requests", () => this.readSummary(), REQUESTS_MS, "when-hidden");
    this.coursesPoll = poll(
      "carrel:courses",
      () => this.readCourses(),
      COURSES_MS,
      () => document.hidden || !this.isShown(),
    );
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.isStarted) this.refresh();
    });
  }

  // Begin to read; ends by itself in a server that is not a session of Carrel.
  async start() {
    await this.requestsPoll.start();
    await this.coursesPoll.start();
    this.isStarted = true;
  }

  stop() {
    this.isStarted = false;
    void this.requestsPoll.stop();
    void this.coursesPoll.stop();
  }

  refresh() {
    if (!this.isStarted) return;
    void this.requestsPoll.refresh();
    if (this.isShown()) void this.coursesPoll.refresh();
  }

  get session() {
    return this.summary && this.summary.sessions.find((each) => each.here);
  }

  // The place of the user's first queued request; null if none is queued.
  get place() {
    if (!this.summary) return null;
    const places = [...this.summary.sessions, ...this.summary.jobs].map((each) => each.place).filter((it) => it !== null);
    return places.length ? Math.min(...places) : null;
  }

  // Seconds until a time of the server.
  until(time) {
    return time - (Date.now() / 1000 + this.skew);
  }

  async readSummary() {
    const before = this.summary;
    await this.read("requests", async () => {
      this.summary = await this.site.read("desk");
      this.skew = this.summary.now - Date.now() / 1000;
    });
    if (before && this.summary !== before) this.tellEnded(before.jobs, this.summary.jobs);
  }

  readCourses() {
    return this.read("courses", async () => {
      this.courses = await this.site.read("courses");
    });
  }

  // Read a part; a failure is shown, and thrown so that the poll waits longer.
  async read(part, action) {
    try {
      await action();
      delete this.problems[part];
    } catch (error) {
      if (error.status === 404) this.stop();
      this.problems[part] = error.message;
      throw error;
    } finally {
      this.changed.emit();
    }
  }

  tellEnded(before, after) {
    // A check tells its result itself.
    for (const job of before.filter((each) => each.kind === "job" && !each.ended)) {
      const now = after.find((each) => each.id === job.id);
      if (now && !now.ended) continue;
      // Beyond the newest jobs, how it ended is on its page only.
      const text = now ? `${job.title} (${job.id}): ${now.sentence}` : `${job.title} (${job.id}) has ended.`;
      const type = !now ? "info" : now.state === "succeeded" ? "success" : "warning";
      this.Notification.emit(text, type, { autoClose: false, actions: [opens("Show it", this.site.requestPage(job.id))] });
    }
  }

  // Follow a check until it has ended; returns it, or null if it is followed already or a newer
  // one was started.
  followCheck(check) {
    const newest = async (assignment) => (await this.site.read("last-check", assignment)).check;
    return this.follow(this.checks, check, (each) => each.request, newest);
  }

  followOfficial(check) {
    const newest = async (assignment) => (await this.site.read("official-checks", assignment)).checks[0];
    return this.follow(this.officials, check, (each) => each.id, newest);
  }

  async follow(known, started, idOf, newest) {
    const { course, assignment } = started;
    const key = keyOf(course, assignment);
    const id = idOf(started);
    const before = known.get(key);
    const set = (now) => {
      known.set(key, now);
      this.changed.emit();
    };
    set(started);
    if (before && idOf(before) === id && !before.ended) return null;
    while (!known.get(key).ended) {
      await new Promise((done) => setTimeout(done, CHECK_MS));
      if (document.hidden) continue;
      // The server may be away for a moment.
      const now = await newest({ course, assignment }).catch(() => null);
      if (idOf(known.get(key)) !== id || (now && idOf(now) !== id)) return null;
      if (now) set(now);
    }
    return known.get(key);
  }
}
