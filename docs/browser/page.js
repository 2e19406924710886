// The page: takes a file, asks which column is what, has the worker audit it, and shows the report.
const $ = id => document.getElementById(id);
const show = (id, on) => { $(id).hidden = !on; };

// ---- the worker: started from a blob, for such a worker has the policy of the page ----

let worker, loading, number = 0;
const waiting = new Map();

function start() {
  const code = `import ${JSON.stringify(new URL('worker.js', location.href).href)};`;
  worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })), { type: 'module' });
  worker.onmessage = ({ data }) => {
    if ('tell' in data) return told(data.tell, data.share);
    waiting.get(data.number)(data.found);
    waiting.delete(data.number);
  };
  worker.onerror = e => failed(e.message || 'the worker could not be started');
  told('loading', 0);
  loading = ask({ ask: 'load' }).then(found => {
    if (found.failed) return failed(found.failed);
    told('ready: from here on it works without a network', 1);
    document.body.dataset.state = 'ready';
  });
}

function ask(question) {
  number += 1;
  const mine = number;
  return new Promise(resolve => {
    waiting.set(mine, resolve);
    worker.postMessage({ ...question, number: mine });
  });
}

function told(what, share) {
  show('doing', true);
  $('told').textContent = what[0].toUpperCase() + what.slice(1) + '.';
  if (share == null) $('bar').removeAttribute('value');
  else $('bar').value = share;
}

function failed(why) {
  if (why) document.body.dataset.state = 'failed';
  show('fault', Boolean(why));
  $('fault').textContent = why;
}

// ---- the file ----

let name = '', proposed = '', needsCase = false;

async function take(file) {
  failed('');
  show('form', false);
  show('result', false);
  $('named').textContent = `${file.name}, ${Math.ceil(file.size / 1000).toLocaleString('en')} kB`;
  await loading;
  told('looking at the file', null);
  name = file.name.replace(/[^\w.-]/g, '_');
  const seen = await ask({ ask: 'look', file, name, options: {} });
  told('ready', 1);
  if (seen.refused || seen.failed) return failed(seen.refused || seen.failed);
  fill($('label'), seen.columns, seen.label);
  fill($('score'), seen.columns, seen.score);
  $('percent').checked = seen.scale === 'percent';
  $('by').replaceChildren(...seen.columns.map(c => checkbox(c, seen.candidates.by.includes(c))));
  const unit = seen.command.includes('--cluster') ? seen.candidates.unit[0] : '';
  fill($('cluster'), seen.columns, unit, 'none: each row is by itself');
  $('drop-missing').checked = Object.keys(seen.dropped).length > 0;
  show('missing', $('drop-missing').checked);
  about(seen);
  show('form', true);
  document.body.dataset.state = 'seen';
}

function about(seen) {
  const rows = seen.rows == null ? '' : `${seen.rows.toLocaleString('en')} rows, ${seen.columns.length} columns. `;
  $('seen').textContent = `${rows}What is chosen below is a guess by names and values: check it.`;
  fill($('positive'), seen.label_values.map(([value]) => value), seen.case);
  [proposed, needsCase] = [seen.case, seen.command.includes('--positive')];
  for (const box of $('by').querySelectorAll('input')) {
    box.parentNode.hidden = [$('label').value, $('score').value].includes(box.value);
    if (box.parentNode.hidden) box.checked = false;
  }
  refused(seen.refusals);
}

function refused(why) {
  const line = text => Object.assign(document.createElement('li'), { textContent: text });
  $('refusals').replaceChildren(...why.map(line));
  show('refusals', why.length > 0);
}

function fill(select, names, chosen, without = '') {
  const none = new Option(without || 'choose', '');
  const options = names.map(n => new Option(n, n, n === chosen, n === chosen));
  select.replaceChildren(...(chosen && !without ? [] : [none]), ...options);
}

function checkbox(column, checked) {
  const box = Object.assign(document.createElement('input'), { type: 'checkbox', value: column, checked });
  const label = Object.assign(document.createElement('label'), { className: 'check' });
  label.append(box, ` ${column}`);
  return label;
}

function options() {
  const by = [...$('by').querySelectorAll('input:checked')].map(box => box.value);
  const missing = $('drop-missing').checked ? 'drop' : '', cluster = $('cluster').value;
  return { label: $('label').value, score: $('score').value, percent: $('percent').checked, by, missing, cluster };
}

async function again() {
  const seen = await ask({ ask: 'look', name, options: options() });
  if (seen.refused || seen.failed) return refused([seen.refused || seen.failed]);
  about(seen);
}

for (const id of ['label', 'score', 'percent', 'cluster', 'drop-missing']) $(id).onchange = again;
$('file').onchange = () => $('file').files.length && take($('file').files[0]);
$('example').onclick = async () => {
  const answer = await fetch('example.csv');
  take(new File([await answer.blob()], 'example.csv'));
};
$('drop').ondragover = e => { e.preventDefault(); $('drop').classList.add('over'); };
$('drop').ondragleave = () => $('drop').classList.remove('over');
$('drop').ondrop = e => {
  e.preventDefault();
  $('drop').classList.remove('over');
  if (e.dataTransfer.files.length) take(e.dataTransfer.files[0]);
};

// ---- the audit ----

const VERDICTS = {
  met: 'Met: the probabilities are within the limit.',
  broken: 'Over the limit: for everyone, or for a group or pocket that the report names.',
  undecided: 'Undecided: the rows do not show whether the limit holds. That is not a pass.',
};
const made = [];

function address(text, type) {
  made.push(URL.createObjectURL(new Blob([text], { type })));
  return made.at(-1);
}

$('form').onsubmit = async e => {
  e.preventDefault();
  failed('');
  show('result', false);
  document.body.dataset.state = 'auditing';
  $('run').disabled = true;
  show('stop', true);
  const began = performance.now(), limit = $('limit').value ? Number($('limit').value) / 100 : null;
  const chosen = $('positive').value, positive = needsCase || chosen !== proposed ? chosen : '';
  const found = await ask({ ask: 'audit', name, options: { ...options(), positive, limit } });
  $('run').disabled = false;
  show('stop', false);
  told(`done in ${Math.round((performance.now() - began) / 1000)} s`, 1);
  if (found.refused || found.failed) return failed(found.refused || found.failed);
  made.splice(0).forEach(URL.revokeObjectURL);
  $('html').href = $('report').src = address(found.page, 'text/html');
  $('json').href = address(found.record, 'application/json');
  $('verdict').textContent = VERDICTS[found.verdict] || 'No limit was given: the report has the ranges.';
  show('result', true);
  $('verdict').focus();
  document.body.dataset.state = 'done';
};

$('stop').onclick = () => {
  worker.terminate();
  waiting.clear();
  $('run').disabled = false;
  show('stop', false);
  show('form', false);
  $('named').textContent = 'Stopped. Choose the file again.';
  $('file').value = '';
  start();
};

start();
