// Times in the reader's zone, counters, announcements, and helpers of forms.
// Pages also work, or are at least readable, without this file.
"use strict";
(() => {
  const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
  const second = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const dayAndClock = new Intl.DateTimeFormat([], {
    day: "numeric", month: "short", hour: "2-digit", minute: "2-digit",
  });
  const full = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium" });
  const wholeMinute = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });

  const span = (seconds) => {
    const s = Math.max(0, Math.round(seconds));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.round(s / 60)} min`;
    if (s < 86400) {
      const minutes = Math.round((s % 3600) / 60);
      const hours = Math.floor(s / 3600) + (minutes === 60 ? 1 : 0);
      return minutes % 60 && hours < 10 ? `${hours} h ${minutes} min` : `${hours} h`;
    }
    return `${Math.round(s / 86400)} d`;
  };
  const countdown = (seconds) => {
    const s = Math.max(0, Math.floor(seconds));
    const two = (n) => String(n).padStart(2, "0");
    const hours = Math.floor(s / 3600);
    const minutes = Math.floor(s / 60) % 60;
    return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(s % 60)}`;
  };
  const shown = {
    seconds: (at) => second.format(at),
    clock: (at) => {
      const today = at.toDateString() === new Date().toDateString();
      return (today ? clock : dayAndClock).format(at);
    },
    coming: (at) => {
      const left = shown.in(at);
      return left === "any moment" ? left : `${shown.clock(at)} (${left})`;
    },
    day: (at) => dayAndClock.format(at),
    date: (at) => (at.getSeconds() ? full : wholeMinute).format(at),
    in: (at) => {
      const seconds = (at - Date.now()) / 1000;
      return seconds < 5 ? "any moment" : `in about ${span(seconds)}`;
    },
    left: (at) => countdown((at - Date.now()) / 1000),
    ago: (at) => {
      const seconds = (Date.now() - at) / 1000;
      return seconds < 2 ? "just now" : `${span(seconds)} ago`;
    },
  };

  const write = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
  const showTimes = (root) => {
    for (const element of root.querySelectorAll("time[data-show]")) {
      const at = new Date(element.dateTime);
      write(element, shown[element.dataset.show](at));
      if (!element.title) element.title = full.format(at);
    }
  };
  // As the service writes them: small amounts have more digits.
  const deviceHours = (seconds) => {
    const amount = seconds / 3600;
    if (amount < 0.005) return amount > 0 ? "less than 0.01" : "0.0";
    const digits = amount < 0.095 ? 2 : 1;
    const shown = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return amount.toLocaleString("en", shown);
  };
  const arrived = new WeakMap();
  const tick = () => {
    showTimes(document);
    for (const element of document.querySelectorAll("[data-ticks]")) {
      if (!arrived.has(element)) arrived.set(element, Date.now());
      const since = (Date.now() - arrived.get(element)) / 1000;
      const sum = Number(element.dataset.ticks) + Number(element.dataset.rate) * since;
      write(element, `${deviceHours(sum)} device-hours`);
    }
  };

  // Announce each change once, however often the part around it is replaced.
  const announceText = (source, announcer) => {
    if (!source || !announcer) return;
    const text = source.textContent.replace(/\s+/g, " ").trim();
    const stable = text.replace(/\(.*?\)/g, "");
    if (announcer.dataset.last === stable) return;
    // The first text is part of the loaded page.
    if (announcer.dataset.last !== undefined) announcer.textContent = text;
    announcer.dataset.last = stable;
  };
  const announce = () => {
    announceText(document.querySelector("[data-announce]"), document.getElementById("announcer"));
    announceText(document.querySelector("[data-quoted]"), document.getElementById("quote-said"));
  };

  // By an attribute and not by a style rule: with a rule, a browser showed both labels.
  const updateStartButton = () => {
    const waits = Boolean(document.querySelector('#start-form [data-waits="yes"]'));
    for (const label of document.querySelectorAll(".when-waits")) label.hidden = !waits;
    for (const label of document.querySelectorAll(".unless-waits")) label.hidden = waits;
  };

  // Without a list the group may use all models; the first option is any model.
  const limitModels = (model, usable) => {
    if (!model) return;
    for (const option of model.options) {
      option.disabled = Boolean(usable && option.value) && !usable.includes(option.value);
    }
    if (model.selectedOptions.length && model.selectedOptions[0].disabled) model.value = "";
  };

  const limitToGroup = () => {
    const group = document.getElementById("group");
    const devices = document.getElementById("devices");
    if (!group || !devices || !group.selectedOptions.length) return;
    const { devices: most, hours, models } = group.selectedOptions[0].dataset;
    for (const option of devices.options) {
      option.disabled = Number(option.value) > Number(most) && !option.defaultSelected;
    }
    if (devices.selectedOptions.length && devices.selectedOptions[0].disabled) devices.value = most;
    limitModels(document.getElementById("model"), models && JSON.parse(models));
    write(document.getElementById("most-hours"), hours);
  };

  // The service refuses calls of a user who makes too many, and says when to try again.
  const TOO_MANY = 429;
  const retryAfter = (seconds) => 1000 * (Number(seconds) || 1);

  // Fetch the log of a job in pieces, and show it as text only.
  const KEPT = 200000;
  const followLog = (log) => {
    let offset = 0;
    let attempt;
    const member = log.dataset.member ? `&member=${log.dataset.member}` : "";
    let decoder = new TextDecoder();
    const read = async () => {
      const state = document.querySelector(".request-live")?.dataset;
      const live = state?.live === "yes";
      if (state?.attempt !== attempt) {
        // A new attempt has a new log.
        [attempt, offset, decoder] = [state?.attempt, 0, new TextDecoder()];
        log.textContent = "";
      }
      let pause = document.hidden ? 10000 : 2000;
      let refused = false;
      try {
        for (;;) {
          const answer = await fetch(`${log.dataset.src}?offset=${offset}${member}`);
          refused = answer.status === TOO_MANY;
          if (refused) pause = Math.max(pause, retryAfter(answer.headers.get("Retry-After")));
          if (!answer.ok) break;
          const bytes = new Uint8Array(await answer.arrayBuffer());
          if (!bytes.length) break;
          offset += bytes.length;
          const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
          const text = log.textContent + decoder.decode(bytes, { stream: true });
          log.textContent = text.slice(-KEPT);
          if (atEnd) log.scrollTop = log.scrollHeight;
        }
      } catch {
        // The service is away; the next round retries.
      }
      if (!log.textContent) log.dataset.empty = live ? "No output yet." : "No output.";
      if (live || refused) setTimeout(read, pause);
    };
    read();
  };

  // Append to the previous output of the same stream; a carriage return overwrites its last line.
  const join = (output) => {
    const before = output.previousElementSibling;
    if (!before || before.dataset.stream !== output.dataset.stream) return;
    if ("over" in output.dataset) dropLastLine(before);
    before.append(...output.childNodes);
    while (before.textContent.length > KEPT) before.firstChild.remove();
    output.remove();
  };
  // Its parts are texts, and elements with a text in a colour.
  const dropLastLine = (printed) => {
    for (let part = printed.lastChild; part; part = printed.lastChild) {
      const end = part.textContent.lastIndexOf("\n") + 1;
      if (end) {
        part.textContent = part.textContent.slice(0, end);
        return;
      }
      part.remove();
    }
  };
  // Keep as many outputs for each cell as a newly loaded page shows.
  const OUTPUTS = 100;
  const settle = () => {
    for (const output of document.querySelectorAll(".outputs > .stream + .stream")) join(output);
    for (const outputs of document.querySelectorAll(".outputs")) {
      while (outputs.childElementCount > OUTPUTS) outputs.firstElementChild.remove();
    }
    if (document.getElementById("follow")?.checked) {
      const all = document.querySelectorAll(".cells > .cell");
      all[all.length - 1]?.scrollIntoView({ block: "end" });
    }
  };
  // A panel that was opened before htmx listened has missed the event that fetches its content.
  document.addEventListener("htmx:load", ({ target }) => {
    for (const panel of target.querySelectorAll("details[open]")) window.htmx.trigger(panel, "toggle");
  }, { once: true });
  // A part of a page that was refused is asked for again when the service says; forms are not.
  document.addEventListener("htmx:responseError", ({ detail }) => {
    const { elt, target, xhr, requestConfig } = detail;
    if (xhr.status !== TOO_MANY || requestConfig.verb !== "get") return;
    setTimeout(() => {
      if (elt.isConnected) window.htmx.ajax("get", requestConfig.path, { source: elt, target });
    }, retryAfter(xhr.getResponseHeader("Retry-After")));
  });
  // Expensive parts (a quote, sums over weeks) are refreshed after a pause, during which further
  // changes are collected.
  const pending = new WeakSet();
  document.addEventListener("htmx:sseMessage", () => {
    for (const part of document.querySelectorAll("[data-pause]")) {
      if (pending.has(part)) continue;
      pending.add(part);
      setTimeout(() => {
        pending.delete(part);
        part.dispatchEvent(new Event("refresh"));
      }, Number(part.dataset.pause));
    }
  });
  // Replace the part only if the response differs; keep opened tables and scroll positions.
  const answers = new WeakMap();
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const { target } = detail;
    if (!target?.matches("[data-pause]")) return;
    // Ignore form tokens, which differ in every response; all of them are valid.
    const content = detail.serverResponse.replaceAll(/name="csrf" value="[^"]*"/g, "");
    if (answers.get(target) === content) detail.shouldSwap = false;
    answers.set(target, content);
    for (const { id } of target.querySelectorAll("details[open][id]")) {
      detail.serverResponse = detail.serverResponse.replace(`id="${id}"`, `id="${id}" open`);
    }
    const scrolled = [...target.querySelectorAll(".table-responsive[id]")]
      .map((table) => [table.id, table.scrollLeft]);
    target.addEventListener("htmx:afterSwap", () => {
      for (const [id, left] of scrolled) {
        const table = document.getElementById(id);
        if (table) table.scrollLeft = left;
      }
    }, { once: true });
  });
  // A part that is replaced by the stream of its page keeps its opened tables.
  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    for (const { id } of detail.target?.querySelectorAll("details[open][id]") ?? []) {
      const again = detail.fragment?.querySelector?.(`#${CSS.escape(id)}`);
      if (again) again.open = true;
    }
  });
  // A reconnected stream may repeat an event: show each event once.
  document.addEventListener("htmx:sseBeforeMessage", (event) => {
    const page = document.querySelector("[data-seen]");
    if (!page || event.detail.type !== "piece") return;
    const id = Number(event.detail.lastEventId);
    if (id <= Number(page.dataset.seen)) event.preventDefault();
    else page.dataset.seen = id;
  });
  document.addEventListener("htmx:oobAfterSwap", settle);
  // A rejected form is returned with the error beside the field.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.getResponseHeader("X-Carrel-Form")) event.detail.shouldSwap = true;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id !== "submit-fields") return;
    limitToGroup();
    (document.querySelector("[aria-invalid]") || document.getElementById("form-problem"))?.focus();
  });

  // The code of a one-time link, which must stay neither in the address nor in the history.
  function takeFragment() {
    const field = document.querySelector("[data-from-fragment]");
    if (!field || !location.hash) return;
    field.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname + location.search);
    document.getElementById("password").focus();
  }

  document.addEventListener("DOMContentLoaded", () => {
    tick();
    announce();
    limitToGroup();
    setInterval(tick, 1000);
    const log = document.getElementById("log");
    if (log) followLog(log);
    takeFragment();
  });
  document.addEventListener("change", (event) => {
    if (event.target.id === "group") limitToGroup();
  });
  // Selecting a notebook in the home clears the selected file of this computer.
  document.addEventListener("click", (event) => {
    const upload = document.getElementById("notebook");
    if (upload && event.target.closest?.("[data-pick]")) upload.value = "";
  });
  // The suggested time limit becomes that of the form.
  document.addEventListener("click", (event) => {
    const suggested = event.target.closest?.("[data-limit]");
    if (!suggested) return;
    const time = document.getElementById("time");
    time.value = suggested.dataset.limit;
    document.getElementById("time_unit").value = suggested.dataset.unit;
    time.dispatchEvent(new Event("change", { bubbles: true }));
  });
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) {
      event.preventDefault();
      return;
    }
    if (event.target.matches("[data-once]")) {
      for (const button of event.target.querySelectorAll("button")) {
        setTimeout(() => (button.disabled = true));
      }
    }
  });
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) window.location.reload();
  });
  for (const name of ["htmx:afterSwap", "htmx:oobAfterSwap", "htmx:sseMessage"]) {
    document.addEventListener(name, () => {
      tick();
      announce();
      updateStartButton();
    });
  }
  const offline = (lost) => () => {
    document.getElementById("offline").hidden = !lost;
  };
  document.addEventListener("htmx:sseError", offline(true));
  document.addEventListener("htmx:sseOpen", offline(false));
  document.addEventListener("htmx:sseClose", offline(false));

  for (const button of document.querySelectorAll("[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => window.print());
  }

  // A frame with figures has no origin, so that browsers keep no cache for it: the page fetches the
  // library, and sends its text. Any frame may ask; it gets nothing but public files.
  const libraryFiles = { plotly: ["plotly.js"], vega: ["vega.js", "vega-lite.js", "vega-embed.js"] };
  const fetched = new Map();
  const text = async (address) => {
    const response = await fetch(address);
    if (!response.ok) throw new Error(`${address}: ${response.status}`);
    return response.text();
  };
  const fetchLibrary = (prefix, library) => {
    if (!fetched.has(library)) {
      const texts = Promise.all(libraryFiles[library].map((name) => text(prefix + name)));
      texts.catch(() => fetched.delete(library));
      fetched.set(library, texts);
    }
    return fetched.get(library);
  };
  const figureFrames = () => [...document.querySelectorAll("iframe[data-libraries]")];
  window.addEventListener("message", async ({ data, source }) => {
    const library = data && data.carrelFigure;
    const frame = figureFrames().find((one) => one.contentWindow === source);
    if (!frame || !Object.hasOwn(libraryFiles, library)) return;
    const scripts = await fetchLibrary(frame.dataset.libraries, library).catch(() => null);
    source.postMessage({ library, scripts }, "*");
  });
  for (const frame of figureFrames()) frame.contentWindow.postMessage({ ready: true }, "*");
})();
