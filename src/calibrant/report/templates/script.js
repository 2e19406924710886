document.documentElement.classList.add('js');
const make = (name, text, given) => Object.assign(document.createElement(name), { textContent: text, ...given });

// ---- what a cell says: its text, the number in it, or the number it is sorted by ----

const said = (cell, apart = ' ') => {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll('svg').forEach(svg => svg.remove());
  copy.querySelectorAll('br, small').forEach(part => part.before(apart));
  return copy.textContent.replace(/[ \n\t]+/g, ' ').trim();
};
const bare = text => text.replace(/[\u00a0\u2009\u202f]|(?<=\d),(?=\d{3}(?!\d))/g, '').replace(/\u2212/g, '-');
const number = text => parseFloat((bare(text).match(/[+-]?\d+(\.\d+)?(e[+-]?\d+)?/) || [])[0]);

// ---- readout: the slider and the pointer walk along the rows of the figure's first table of numbers ----

document.querySelectorAll('figure[data-f]').forEach(figure => {
  const rows = [...figure.querySelector('table.nums').tBodies[0].rows].map(row => [...row.cells]);
  const xs = rows.map(cells => +(cells[0].dataset.s ?? number(said(cells[0]))));
  const sides = (figure.dataset.d || '').split('|');
  const side = range => range.startsWith('+') ? 0 : /to \u2212/.test(range) ? 1 : 2;
  const text = i => figure.dataset.f.replace(/\{(\d|side)\}/g, (_, k) => k === 'side' ? sides[side(said(rows[i][4]))] : said(rows[i][k]));
  const slider = figure.querySelector('.scrub'), out = figure.querySelector('.read');
  const charts = [...figure.querySelectorAll('svg[data-lo]')];
  let at = 0;
  const nearest = x => xs.reduce((k, v, i) => Math.abs(v - x) < Math.abs(xs[k] - x) ? i : k, 0);
  const show = (i, on) => {
    at = Math.max(0, Math.min(xs.length - 1, i));
    slider.value = xs[at];
    out.textContent = text(at);
    slider.setAttribute('aria-valuetext', text(at));
    figure.classList.toggle('on', on);
    charts.forEach(svg => {
      const { lo, hi } = svg.dataset, x = `${100 * (xs[at] - lo) / (hi - lo)}%`;
      const line = svg.querySelector('.cursor');
      line.setAttribute('x1', x);
      line.setAttribute('x2', x);
    });
  };
  show(nearest(+slider.value), false);
  slider.addEventListener('input', () => show(nearest(+slider.value), true));
  slider.addEventListener('keydown', e => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[e.key];
    if (step) { e.preventDefault(); show(at + step, true); }
  });
  charts.forEach(svg => svg.addEventListener('pointermove', e => {
    const box = svg.getBoundingClientRect(), { lo, hi } = svg.dataset;
    show(nearest(+lo + (e.clientX - box.left) / box.width * (hi - lo)), true);
  }));
});

// ---- downloads, without the network: a table as CSV, a chart as SVG and PNG ----

const named = (element, ending) => {
  const place = element.closest('[id]');
  const slug = `${document.getElementById('calibrant-result').dataset.name}-${place ? place.id : 'chart'}`;
  return `${slug.replace(/[^\p{L}\p{N}_-]+/gu, '-').replace(/^-+|-+$/g, '')}.${ending}`;
};
const save = (name, part, type) => {
  const href = URL.createObjectURL(new Blob([part], { type }));
  make('a', '', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
};

// The decimal mark of every CSV: a dot, or the comma of the reader's spreadsheet, which semicolons then separate.
let mark = '.';
const marks = what => {
  const select = make('select', '', { className: 'mark' });
  ['.', ','].forEach(m => select.append(make('option', `1${m}5`, { value: m })));
  select.setAttribute('aria-label', `Decimal mark in the CSV of ${what}`);
  select.addEventListener('change', () => {
    mark = select.value;
    document.querySelectorAll('select.mark').forEach(other => { other.value = mark; });
  });
  return select;
};

// A range becomes two columns, a number loses its commas and plus; a text that a spreadsheet would run gets a quote.
const N = '[+-]?\\d+(?:\\.\\d+)?';
const RANGE = new RegExp(`^(?:(${N}) \\()?(${N})(?: to |\u2013)(${N})\\)?$`);
const field = text => {
  const plain = text === '\u2013' ? '' : bare(text);
  if (new RegExp(`^${N}$`).test(plain)) return plain.replace('+', '').replace('.', mark);
  const first = plain.replace(/^[\s\p{C}'"]+/u, '').slice(0, 1).normalize('NFKC') || ' ';
  const safe = '=+-@'.includes(first) || /^[\t\r\n]/.test(text) ? `'${text}` : text === '\u2013' ? '' : text;
  return (mark === ',' ? /[";\r\n]/ : /[",\r\n]/).test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
};
const csv = table => {
  const lines = [];
  const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows].filter(row => !row.dataset.off);
  const columns = heads.flatMap((head, j) => {
    if (head.matches('.c, .sp')) return [];
    const title = said(head), texts = rows.map(({ cells }) => (!j && !table.matches('.nums') && cells[0].dataset.s) || said(cells[j], '; '));
    const ranges = texts.map(text => bare(text).match(RANGE));
    if (!ranges.some(Boolean) || ranges.some((m, i) => !m && texts[i] && texts[i] !== '\u2013')) return [[title, ...texts]];
    const part = k => ranges.map(m => m && m[k] || '');
    const first = part(1).some(Boolean) ? [[title, ...part(1)]] : [];
    return [...first, [`${title}: low`, ...part(2)], [`${title}: high`, ...part(3)]];
  });
  for (let i = 0; i <= rows.length; i++) lines.push(columns.map(column => field(column[i])).join(mark === ',' ? ';' : ','));
  return `\ufeff${lines.join('\r\n')}\r\n`;
};

// A chart is drawn again with the colours that are seen: its pictures in their places, and its words as they run.
const NS = 'http://www.w3.org/2000/svg';
const PAINT = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'opacity',
  'font-family', 'font-size', 'font-weight', 'text-anchor', 'paint-order', 'vector-effect', 'overflow', 'display'];
const element = (name, given, text = '') => {
  const made = document.createElementNS(NS, name);
  Object.entries(given).forEach(([k, v]) => made.setAttribute(k, v));
  made.textContent = text;
  return made;
};
const painted = (from, to) => {
  const style = getComputedStyle(from);
  PAINT.forEach(k => to.setAttribute(k, style.getPropertyValue(k)));
  ['fill', 'stroke'].forEach(k => {
    const m = (to.getAttribute(k) || '').match(/^rgba\((\d+, \d+, \d+), ([\d.]+)\)$/);
    if (!m) return;
    to.setAttribute(k, `rgb(${m[1]})`);
    to.setAttribute(`${k}-opacity`, m[2] * (to.getAttribute(`${k}-opacity`) || 1));
  });
  if (!from.matches('.cursor')) to.removeAttribute('class');
  [...from.children].forEach((child, i) => painted(child, to.children[i]));
};
const leftOut = (root, element) => {
  const found = element.closest('svg, details, .tools, .scrub, .read, .more, .hush, script');
  return found && found !== root && root.contains(found);
};
const words = (root, box) => {
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), range = document.createRange(), out = [];
  for (let node; (node = walk.nextNode());) {
    if (leftOut(root, node.parentElement)) continue;
    const style = getComputedStyle(node.parentElement);
    let line = null;
    for (const m of node.data.matchAll(/[^ \n\t]+/g)) {
      range.setStart(node, m.index);
      range.setEnd(node, m.index + m[0].length);
      const r = range.getClientRects()[0];
      if (!r || !r.width) continue;
      if (line && Math.abs(line.y - r.top) < 2) { line.text += ` ${m[0]}`; continue; }
      line = { text: m[0], y: r.top, x: r.left - box.left, middle: r.top + r.height / 2 - box.top, style };
      out.push(line);
    }
  }
  return out.map(({ text, x, middle, style }) => element('text', {
    x, y: middle, 'dominant-baseline': 'central', fill: style.color, 'font-family': style.fontFamily, 'font-size': style.fontSize,
    'font-weight': style.fontWeight,
  }, text));
};
const picture = root => {
  const box = root.getBoundingClientRect(), width = Math.ceil(box.width) + 24, texts = words(root, box), made = element('svg', {});
  let foot = Math.max(0, ...texts.map(text => +text.getAttribute('y') + 12));
  root.querySelectorAll('svg').forEach(svg => {
    const r = svg.getBoundingClientRect();
    if (!r.width || leftOut(root, svg.parentElement)) return;
    const copy = svg.cloneNode(true);
    painted(svg, copy);
    const place = { x: r.left - box.left, y: r.top - box.top, width: r.width, height: r.height };
    Object.entries(place).forEach(([k, v]) => copy.setAttribute(k, v));
    copy.querySelectorAll('.cursor').forEach(line => line.remove());
    foot = Math.max(foot, place.y + place.height + parseFloat(getComputedStyle(svg).marginBottom));
    made.append(copy);
  });
  const height = Math.ceil(foot) + 24, view = { width, height, viewBox: `-12 -12 ${width} ${height}` };
  Object.entries(view).forEach(([k, v]) => made.setAttribute(k, v));
  made.prepend(element('rect', { x: -12, y: -12, width, height, fill: getComputedStyle(document.body).backgroundColor }));
  made.append(...texts);
  return { width, height, text: new XMLSerializer().serializeToString(made) };
};
const png = (root, name) => {
  const { width, height, text } = picture(root), image = new Image();
  image.onload = () => {
    const canvas = make('canvas', '', { width: 2 * width, height: 2 * height }), pen = canvas.getContext('2d');
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(blob => save(name, blob, 'image/png'));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
};
const button = (text, label, click) => {
  const made = make('button', text, { type: 'button', onclick: click });
  made.setAttribute('aria-label', label);
  return made;
};
const charts = (root, what) => [
  button('SVG', `Download ${what} as SVG`, () => save(named(root, 'svg'), picture(root).text, 'image/svg+xml')),
  button('PNG', `Download ${what} as PNG`, () => png(root, named(root, 'png'))),
];

// ---- tables: a filter, sorting by every column, as many rows as are asked for ----

const tools = (...parts) => {
  const made = make('div', '', { className: 'tools' });
  made.append(...parts);
  return made;
};
document.querySelectorAll('section:not(#summary) table').forEach(table => {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], total = body.rows.length;
  const most = +table.dataset.most || total, what = table.caption ? said(table.caption).split(/[.:]/)[0] : 'this table';
  const filter = make('input', '', { type: 'search', placeholder: 'Filter' }), more = make('button', '', { type: 'button', className: 'more' });
  const count = make('span', '', { className: 'quiet' });
  let all = total <= most;
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    let found = 0;
    [...body.rows].forEach((row, i) => {
      const hit = !wanted || said(row).toLowerCase().includes(wanted);
      found += hit;
      row.hidden = !hit || (!all && !wanted && i >= most);
      if (hit) delete row.dataset.off; else row.dataset.off = 1;
    });
    count.textContent = wanted ? `${found} of ${total}` : '';
    more.hidden = all || !!wanted;
  };
  filter.setAttribute('aria-label', `Filter ${what}`);
  filter.addEventListener('input', show);
  count.setAttribute('role', 'status');
  more.textContent = `Show all ${total}`;
  more.addEventListener('click', () => { all = true; show(); });
  table.addEventListener('reveal', () => { all = true; filter.value = ''; show(); });
  const rest = [button('CSV', `Download ${what} as CSV`, () => save(named(table, 'csv'), csv(table), 'text/csv')), marks(what)];
  if (table.matches('.forest')) rest.push(...charts(table, what));
  table.parentNode.before(tools(filter, count, ...rest));
  table.parentNode.after(more);
  heads.forEach((head, column) => {
    const numbers = head.matches('.r, .c') || table.matches('.nums') || [...body.rows].every(row => row.cells[column].dataset.s > -1e9);
    if (head.matches('.sp') || !said(head) || total < 2) return;
    const by = make('button', '', { type: 'button' });
    by.append(...head.childNodes);
    head.append(by);
    by.addEventListener('click', () => {
      const was = head.getAttribute('aria-sort'), up = (was ? was === 'descending' : !numbers) ? 1 : -1;
      heads.forEach(h => h.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', up > 0 ? 'ascending' : 'descending');
      const key = row => row.cells[column].dataset.s ?? said(row.cells[column]);
      const value = row => numbers ? number(key(row)) : key(row);
      const order = (p, q) => numbers ? (Number.isNaN(p) - Number.isNaN(q)) || up * (p - q) || 0 : up * p.localeCompare(q, 'en', { numeric: true });
      [...body.rows].map(row => [value(row), row]).sort((x, y) => order(x[0], y[0])).forEach(([, row]) => body.append(row));
      show();
    });
  });
  show();
});
document.querySelectorAll('section:not(#summary) figure').forEach(figure => {
  if (!figure.querySelector('svg[role=img]')) return;
  const root = figure.closest('details.along') || figure, numbers = figure.querySelector('table.nums');
  const rest = numbers ? [button('CSV', 'Download the numbers of this figure as CSV', () => save(named(figure, 'csv'), csv(numbers), 'text/csv')), marks('this figure')] : [];
  figure.insertBefore(tools(...rest, ...charts(root, 'this figure')), figure.querySelector(':scope > details'));
});

// ---- print shows everything; a link into closed details or a folded table opens them ----

let shut = [];
addEventListener('beforeprint', () => {
  shut = [...document.querySelectorAll('details:not([open])')];
  shut.forEach(d => { d.open = true; });
});
addEventListener('afterprint', () => shut.forEach(d => { d.open = false; }));
const reveal = () => {
  let target = null;
  try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
  if (!target) return;
  const inside = target.querySelector(':scope > details.shut'), row = target.closest('tr');
  if (inside) inside.open = true;
  for (let d = target.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
  if (row && row.hidden) row.closest('table').dispatchEvent(new Event('reveal'));
  if (inside || row || target.closest('details')) target.scrollIntoView({ behavior: 'instant', block: row ? 'center' : 'start' });
};
addEventListener('hashchange', reveal);
addEventListener('click', e => { if (e.target.closest('a[href^="#"]')) setTimeout(reveal); });
reveal();
