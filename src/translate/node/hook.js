// Put into every thread of a traced program: the condition of a breakpoint calls it, it writes down what it sees, and is
// false. What is there is kept from the beginning, since a program may replace it. It is true, and the thread pauses, where
// the debugger has to look itself (`take` says for what), and when enough was seen.
(config, load) => {
  // One that could not be taken away in time.
  if (typeof globalThis.__bugeye__ === 'function') globalThis.__bugeye__.end?.();
  const fs = load('fs'), inspector = load('inspector');
  const { isProxy } = load('util').types, { performance } = load('perf_hooks');
  const { writeSync, closeSync } = fs, { stringify } = JSON, { round } = Math, ObjectOf = Object, ErrorOf = Error, MapOf = Map;
  const { getOwnPropertyDescriptor, getPrototypeOf } = Object, { isArray } = Array, { captureStackTrace } = Error;
  const now = performance.now.bind(performance), offset = performance.timeOrigin - config.began;
  const out = fs.openSync(config.sink, 'a', 0o600);
  const session = new inspector.Session();
  session.connect();
  const LONGEST = 200;
  // A value that only the debugger itself can read without running the program's own code.
  const HARD = {};

  const ask = (method, params) => {
    let answer;
    session.post(method, params, (error, result) => { answer = error ? undefined : result; });
    return answer;
  };
  const holder = { value: undefined };
  globalThis.__bugeye__ = holder;
  const { objectId } = ask('Runtime.evaluate', { expression: 'globalThis.__bugeye__' }).result;

  // Getters of the language itself that the debugger knows to read only.
  const harmless = new Set();
  for (const [owner, names] of [
    [Map.prototype, ['size']], [Set.prototype, ['size']], [ArrayBuffer.prototype, ['byteLength']],
    [getPrototypeOf(Uint8Array.prototype), ['length', 'byteLength', 'byteOffset', 'buffer']],
    [DataView.prototype, ['byteLength', 'byteOffset', 'buffer']],
  ]) for (const name of names) harmless.add(getOwnPropertyDescriptor(owner, name)?.get);

  // A property, without running code of the program.
  const get = (object, key) => {
    if (object === null || object === undefined || typeof key === 'symbol') return object[key];
    primitive(key);
    for (let at = ObjectOf(object); at !== null; at = getPrototypeOf(at)) {
      if (isProxy(at)) throw HARD;
      const found = getOwnPropertyDescriptor(at, key);
      if (found === undefined) continue;
      if (found.get === undefined) return found.value;
      if (!harmless.has(found.get)) throw HARD;
      return object[key];
    }
    return undefined;
  };
  // Operators run code of objects.
  const primitive = value => {
    if ((typeof value === 'object' && value !== null) || typeof value === 'function') throw HARD;
    return value;
  };

  // Values in the words of `values.rs`.
  const quoted = text => `'${text.replace(/[\\'\n\r\t]/g, c => ({ '\n': '\\n', '\r': '\\r', '\t': '\\t' })[c] ?? '\\' + c)}'`;
  const key = name => /^[\p{Alphabetic}\p{N}_$]+$/u.test(name) || /^[#[]/.test(name) ? name : quoted(name);
  const functionText = description => {
    const head = description.split(/[{\n]/, 1)[0].trim();
    const word = prefix => head.startsWith(prefix) ? head.slice(prefix.length).split(/[( ]/, 1)[0] : undefined;
    const name = word('class ');
    if (name !== undefined) return `[class ${name}]`;
    const own = word('async function ') ?? word('function* ') ?? word('function ');
    if (own) return `[Function: ${own}]`;
    const arrow = head.indexOf('=>');
    return arrow < 0 ? '[Function]' : `[Function: ${head.slice(0, arrow).trim()} =>]`;
  };
  const previewText = ({ type, subtype, value, description }) => {
    const text = value ?? description ?? '';
    if (type === 'string') return quoted(text);
    if (type === 'function') return '[Function]';
    if (type === 'accessor') return '[getter]';
    if (subtype === 'null') return 'null';
    if (type === 'undefined') return 'undefined';
    if (type === 'object' && text === 'Object') return '{…}';
    if (type === 'object' && subtype === 'array' && text.startsWith('Array(')) return text === 'Array(0)' ? '[]' : '[…]';
    return text;
  };
  const compose = ({ subtype, className = '', description = '' }, parts, entries, more) => {
    const closed = (open, items, close) => open + [...items, ...(more ? ['…'] : [])].join(', ') + close;
    const pairs = () => parts.map(([name, value]) => `${key(name)}: ${value}`);
    switch (subtype) {
      case 'error': return description.split('\n', 1)[0] || className;
      case 'date': case 'regexp': case 'weakmap': case 'weakset': case 'generator': case 'iterator': case 'arraybuffer':
      case 'dataview': return description;
      case 'promise': {
        const of = name => parts.find(([known]) => known === name)?.[1].replace(/^'+|'+$/g, '');
        const [state, result] = [of('[[PromiseState]]'), of('[[PromiseResult]]')];
        if (state === undefined || state === 'pending') return 'Promise {<pending>}';
        return state === 'rejected' && result !== undefined ? `Promise {<rejected> ${result}}` : `Promise {${result ?? ''}}`;
      }
      case 'array': case 'typedarray': {
        const items = parts.map(([name, value]) => /^\d+$/.test(name) ? value : `${key(name)}: ${value}`);
        const head = subtype === 'array' && className === 'Array' ? '' : `${description} `;
        return head + closed('[', items, ']');
      }
      case 'map': case 'set': return `${description} ${closed('{', entries, '}')}`;
      case 'proxy': return `${description} ${closed('{', pairs(), '}')}`;
      default: return (className === 'Object' ? '' : `${className} `) + closed('{', pairs(), '}');
    }
  };
  const glimpse = object => {
    const { type, subtype, value, description, unserializableValue, preview = {} } = object;
    switch (type) {
      case 'undefined': return 'undefined';
      case 'string': return quoted(value);
      case 'number': case 'bigint': return unserializableValue ?? description;
      case 'boolean': return String(value);
      case 'function': return functionText(description);
      case 'object': {
        if (subtype === 'null') return 'null';
        const parts = (preview.properties ?? []).map(part => [part.name, previewText(part)]);
        const entries = (preview.entries ?? []).map(entry => {
          const text = entry.value ? previewText(entry.value) : '';
          return entry.key ? `${previewText(entry.key)} => ${text}` : text;
        });
        return compose(object, parts, entries, preview.overflow);
      }
      default: return description ?? '';
    }
  };
  const lengthOf = ({ subtype, description = '' }) =>
    subtype === 'array' || subtype === 'typedarray' ? Number(/\((\d+)\)$/.exec(description)?.[1] ?? NaN) : NaN;
  const leavesOut = object => {
    const { preview, subtype } = object;
    if (!preview || (subtype && subtype !== 'array') || lengthOf(object) > 100) return false;
    return preview.overflow || (preview.properties ?? []).some(part => part.type === 'object' && part.subtype !== 'null');
  };
  const release = object => { if (object?.objectId) ask('Runtime.releaseObject', { objectId: object.objectId }); };
  const partsOf = id => {
    const answer = ask('Runtime.getProperties', { objectId: id, ownProperties: true, generatePreview: true });
    if (!answer) return undefined;
    const parts = [];
    for (const list of [answer.result, answer.privateProperties ?? [], answer.internalProperties ?? []]) {
      for (const property of list) {
        const { name, value, enumerable = true } = property;
        if (name !== '[[Prototype]]' && name !== '__proto__' && (enumerable || /^(message|cause|errors)$/.test(name))
            && !name.startsWith('[['))
          parts.push([name, value ? glimpse(value) : property.get ? '[getter]' : '[Function]']);
        for (const object of [value, property.get, property.set, property.symbol]) release(object);
      }
    }
    return parts;
  };
  const described = value => {
    holder.value = value;
    const [{ value: object }] = ask('Runtime.getProperties', { objectId, ownProperties: true, generatePreview: true }).result;
    holder.value = undefined;
    return object;
  };
  const objectText = value => {
    const object = described(value);
    let text = glimpse(object);
    if (leavesOut(object)) {
      const parts = partsOf(object.objectId);
      const whole = parts && compose(object, parts.slice(0, 50), [], parts.length > 50);
      if (whole !== undefined && Buffer.byteLength(whole) <= 4000) text = whole;
    }
    release(object);
    return text;
  };
  const textOf = value => {
    switch (typeof value) {
      case 'number': return value === 0 && 1 / value < 0 ? '-0' : `${value}`;
      case 'string': return quoted(value.length > 2 * LONGEST ? value.slice(0, 2 * LONGEST) : value);
      case 'undefined': case 'boolean': return `${value}`;
      case 'bigint': return `${value}n`;
      default: return value === null ? 'null' : objectText(value);
    }
  };
  // As the reader of a reply gets it: nothing that acts on a terminal, and no more than a value's share.
  const unsafe = /[\p{Cc}\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
  const shown = text => {
    if (text.length <= LONGEST && /^[ -~]*$/.test(text)) return text;
    const names = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };
    const clean = text.slice(0, 4 * LONGEST).replace(/\p{Surrogate}/gu, '\ufffd')
      .replace(unsafe, c => names[c] ?? `\\u{${c.codePointAt(0).toString(16)}}`);
    const all = [...clean];
    return all.length > LONGEST ? all.slice(0, LONGEST).join('') + '…' : clean;
  };
  const complaint = thrown => {
    if (typeof thrown !== 'object' || thrown === null) return `${textOf(thrown)} was thrown`;
    const object = described(thrown);
    const text = object.subtype === 'error' ? object.description.split('\n    at ', 1)[0] : `${glimpse(object)} was thrown`;
    release(object);
    return text.replace(/\p{Surrogate}/gu, '\ufffd');
  };
  const read = thunk => {
    let value;
    try {
      value = thunk(access);
    } catch (error) {
      if (error === HARD) throw error;
      return `[${stringify(complaint(error))}]`;
    }
    return stringify(shown(textOf(value)));
  };
  const access = { get, primitive };

  // The way to a hit, as far as it tells one from another.
  const wayHere = entry => {
    const holds = {}, before = ErrorOf.prepareStackTrace, limit = ErrorOf.stackTraceLimit;
    const had = getOwnPropertyDescriptor(ErrorOf, 'prepareStackTrace') !== undefined;
    let calls;
    try {
      ErrorOf.stackTraceLimit = config.frames * 4 + 16;
      ErrorOf.prepareStackTrace = (_, calls) => calls;
      captureStackTrace(holds, entry);
      calls = holds.stack;
    } finally {
      ErrorOf.stackTraceLimit = limit;
      if (had) ErrorOf.prepareStackTrace = before; else delete ErrorOf.prepareStackTrace;
    }
    if (!isArray(calls)) return `${calls}`;
    let way = '', count = 0;
    // The first is the condition itself.
    for (let index = 1; index < calls.length && count < config.frames; index++) {
      const call = calls[index], file = call.getScriptNameOrSourceURL();
      if (call.isAsync() || (file && file.startsWith('node:'))) continue;
      way += `${file}:${call.getPosition()}:${call.getFunctionName()}\n`;
      count++;
    }
    return way;
  };

  const points = new MapOf(config.points.map(point => [point.id, { ...point, passes: 0 }]));
  const ways = new MapOf();
  // The beginning of the record that is being written.
  let left = config.most || Infinity, pending = [], head;

  // Counts a pass; the beginning of its record, or undefined where it is not to be told.
  const counted = (point, way) => {
    if (++point.passes % point.every) return undefined;
    left--;
    return `[${point.id},${round((now() + offset) * 1000)},${config.thread},${way},[`;
  };
  const hit = (id, when, ...thunks) => guarded(id, when, thunks, undefined);
  // The values are there.
  const direct = (id, ...values) => guarded(id, 0, undefined, values);
  const guarded = (id, when, thunks, values) => {
    // A condition that throws would be a hit that nobody sees.
    head = undefined;
    try {
      return seen(id, when, thunks, values);
    } catch {
      pending.push(head === undefined ? { point: id, outside: true } : { point: id, head, full: left <= 0 });
      return true;
    }
  };
  // A condition that can't be evaluated is no hit, which is told once.
  const fail = (point, error) => {
    if (point.failed) return;
    let why = 'it failed';
    try { why = complaint(error); } catch {}
    writeSync(out, `["w",${point.id},${stringify(why)}]\n`);
    point.failed = true;
  };
  const seen = (id, when, thunks, values) => {
    if (left <= 0) {
      pending.push({ point: id, full: true });
      return true;
    }
    const point = points.get(id);
    if (when) {
      try {
        if (!when()) return false;
      } catch (error) {
        try { fail(point, error); } catch {}
        return false;
      }
    }
    let way = 0, isNew = false;
    if (config.frames && (point.passes + 1) % point.every === 0) {
      const here = wayHere(values ? direct : hit);
      way = ways.get(here);
      if ((isNew = way === undefined)) ways.set(here, way = config.thread * 1e9 + ways.size + 1);
    }
    head = counted(point, way);
    if (head === undefined) return false;
    let line;
    if (!point.hard) {
      try {
        line = head;
        const { length } = values ?? thunks;
        for (let index = 0; index < length; index++)
          line += (index ? ',' : '') + (values ? stringify(shown(textOf(values[index]))) : read(thunks[index]));
        line += ']]\n';
      } catch {
        line = undefined;
      }
    }
    const full = left <= 0;
    if (line !== undefined && !isNew) {
      try {
        writeSync(out, line);
        if (full) pending.push({ point: id, full });
        return full;
      } catch {}
    }
    pending.push({ point: id, head, line, way: isNew ? way : undefined, full });
    return true;
  };
  hit.now = direct;
  hit.get = get;
  hit.primitive = primitive;
  // What the debugger is to do, now that the thread is paused.
  hit.take = () => {
    const all = stringify(pending);
    pending = [];
    return all;
  };
  // A hit in a realm that has no hook: the debugger saw it.
  hit.outside = id => {
    if (left <= 0) return stringify([{ point: id, full: true }]);
    const head = counted(points.get(id), 0);
    return stringify(head === undefined ? [] : [{ point: id, head, full: left <= 0 }]);
  };
  // The trace is over.
  hit.end = () => {
    left = 0;
    delete globalThis.__bugeye__;
    session.disconnect();
    closeSync(out);
  };
  Object.defineProperty(globalThis, '__bugeye__', { value: hit, configurable: true, writable: true, enumerable: false });
}
