// Preloaded into the proxy: keep serving when the log cannot be written.
//
// Node writes to a file synchronously. On a full disk the first error destroys the stream, every
// further line fails as well, the proxy logs that error, and so on: it would spin and answer no
// request. Lines that cannot be written are dropped; logging resumes as soon as there is space.
"use strict";
const fs = require("node:fs");

for (const stream of [process.stdout, process.stderr]) {
  const descriptor = stream.fd;
  stream.write = (chunk, encoding, done) => {
    const callback = typeof encoding === "function" ? encoding : done;
    try {
      fs.writeSync(descriptor, typeof chunk === "string" ? chunk : Buffer.from(chunk));
    } catch {
      // There is nowhere to report it.
    }
    if (callback) process.nextTick(callback);
    return true;
  };
}
