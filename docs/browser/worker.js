// Runs Python beside the page: loads it once, then answers one question at a time.
import { loadPyodide } from './pyodide/pyodide.mjs';

const at = new URL('.', import.meta.url).href;
const tell = (what, share) => postMessage({ tell: what, share });
let inside, fs;

async function got(name) {
  const answer = await fetch(at + name);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

async function load() {
  const facts = await (await got('facts.json')).json();
  tell('loading Python', 0.02);
  const python = await loadPyodide({ indexURL: `${at}pyodide/` });
  tell('loading NumPy, SciPy, Arrow and scikit-learn', 0.25);
  await python.loadPackage(facts.packages, { messageCallback() {}, errorCallback(m) { throw new Error(m); } });
  tell('loading calibrant', 0.8);
  python.unpackArchive(await (await got('python.zip')).arrayBuffer(), 'zip', { extractDir: '/lib/calibrant' });
  python.runPython("import sys; sys.path.insert(0, '/lib/calibrant')");
  python.FS.mkdir('/audit');
  python.FS.writeFile('/lib/calibrant/inside.py', await (await got('inside.py')).text());
  inside = python.pyimport('inside');
  fs = python.FS;
  return { python: python.version };
}

async function answer({ ask, file, name, options }) {
  if (ask === 'load') return load();
  if (file) fs.writeFile(`/audit/${name}`, new Uint8Array(await file.arrayBuffer()));
  if (ask === 'look') return JSON.parse(inside.look(name, JSON.stringify(options)));
  return JSON.parse(inside.audit(name, JSON.stringify(options), tell));
}

let last = Promise.resolve();
onmessage = event => {
  last = last.then(() => answer(event.data)).then(
    found => postMessage({ number: event.data.number, found }),
    e => postMessage({ number: event.data.number, found: { failed: String(e.stack || e) } }),
  );
};
