// Loaded into the proxy, so that no client waits for a connection that has ended.
//
// An answer whose server died in the middle of it ends for its reader too. The proxy pipes what a
// server sends into what a browser reads, and a pipe whose source breaks off leaves its target
// open. A page that listens to a stream of a service that was killed would listen for ever; cut
// off, it connects again by itself.
//
// And a connection that has been idle is let go before the service closes it, after 30 seconds
// (hub/web/app.py). The proxy keeps connections and asks again on them: a question that
// meets the closing would be answered with "503 Service Unavailable".
"use strict";
const http = require("node:http");
const { IncomingMessage, ServerResponse } = http;

const IDLE_MILLISECONDS = 20_000;
http.Agent = class extends http.Agent {
  constructor(options) {
    super({ timeout: IDLE_MILLISECONDS, ...options });
  }
};

const pipe = IncomingMessage.prototype.pipe;
IncomingMessage.prototype.pipe = function (target, options) {
  if (target instanceof ServerResponse) {
    this.once("close", () => {
      if (!this.complete) target.destroy();
    });
  }
  return pipe.call(this, target, options);
};
