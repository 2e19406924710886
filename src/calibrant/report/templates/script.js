document.documentElement.classList.add('js');

// Readout: the slider and the pointer walk along the figure; the sentences are in the page.
document.querySelectorAll('figure[data-k]').forEach(figure => {
  const data = JSON.parse(document.getElementById('pts-' + figure.dataset.k).textContent);
  const slider = figure.querySelector('.scrub'), out = figure.querySelector('.read');
  const charts = [...figure.querySelectorAll('svg[data-lo]')];
  const told = i => data.n + data.f[data.v[i][5]].replace(/\{(\d)\}/g, (_, k) => data.v[i][k]);
  let at = 0;
  const nearest = x => data.x.reduce((k, v, i) => Math.abs(v - x) < Math.abs(data.x[k] - x) ? i : k, 0);
  const show = (i, on) => {
    at = Math.max(0, Math.min(data.x.length - 1, i));
    slider.value = data.x[at];
    out.textContent = told(at);
    slider.setAttribute('aria-valuetext', told(at));
    figure.classList.toggle('on', on);
    charts.forEach(svg => {
      const { lo, hi } = svg.dataset, x = `${100 * (data.x[at] - lo) / (hi - lo)}%`;
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

// Sorting: the button of a column orders the rows of its table.
document.querySelectorAll('table.sort').forEach(table => table.querySelectorAll('th button').forEach(button => {
  button.addEventListener('click', () => {
    const head = button.parentNode, heads = [...head.parentNode.children], column = heads.indexOf(head);
    const was = head.getAttribute('aria-sort'), up = (was ? was === 'descending' : column === 0) ? 1 : -1;
    heads.forEach(h => h.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', up > 0 ? 'ascending' : 'descending');
    const body = table.tBodies[0], key = row => row.cells[column].dataset.s;
    [...body.rows].sort((x, y) => {
      const p = key(x), q = key(y);
      return up * (column === 0 ? p.localeCompare(q) : p - q);
    }).forEach(row => body.append(row));
  });
}));

// Print shows everything; a link into closed details opens them.
let shut = [];
addEventListener('beforeprint', () => {
  shut = [...document.querySelectorAll('details:not([open])')];
  shut.forEach(d => { d.open = true; });
});
addEventListener('afterprint', () => shut.forEach(d => { d.open = false; }));
const reveal = () => {
  let target = null;
  try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
  const details = target && target.closest('details');
  if (!details) return;
  details.open = true;
  target.scrollIntoView({ behavior: 'instant', block: target === details ? 'start' : 'center' });
};
addEventListener('hashchange', reveal);
addEventListener('click', e => { if (e.target.closest('a[href^="#"]')) setTimeout(reveal); });
reveal();
