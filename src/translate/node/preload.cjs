// Bugeye has every Node process of a session load this first: it opens the inspector on a port of its own, says where, and
// waits until the debugger is ready. Where nobody listens any more, the program runs as if this file were not there.
'use strict';
const path = process.env.BUGEYE_NODE;
if (path && require('worker_threads').isMainThread) {
  const fs = require('fs');
  let channel;
  try {
    channel = fs.openSync(path, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
  } catch {}
  if (channel !== undefined) {
    try {
      const inspector = require('inspector');
      if (!inspector.url()) inspector.open(0, '127.0.0.1', false);
      fs.writeSync(channel, JSON.stringify({ pid: process.pid, url: inspector.url() }) + '\n');
      fs.closeSync(channel);
      inspector.waitForDebugger();
    } catch {}
  }
}
