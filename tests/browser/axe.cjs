// Runs axe-core over pages in views, such as "1280 light,390 dark"; prints one JSON object: "page view" -> faults.
// A page is a file, or an address on this machine: nothing is asked of another, and MathJax, which is elsewhere, not missed.
// node axe.cjs NODE_MODULES BROWSER VIEWS PAGE...
const fs = require('fs');
const path = require('path');

const [modules, executablePath, views, ...pages] = process.argv.slice(2);
const { chromium } = require(path.join(modules, 'playwright-core'));
const axe = fs.readFileSync(path.join(modules, 'axe-core', 'axe.min.js'), 'utf8');

const MATH = 'https://cdn.jsdelivr.net/npm/mathjax@';
const served = page => page.startsWith('http://');
const called = page => served(page) ? new URL(page).pathname.slice(1).replace(/\.html$/, '') : path.basename(page, '.html');

async function faults(page) {
  await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const out = found.violations.map(v => `${v.id}: ${v.nodes.length} x ${v.nodes[0].html.slice(0, 160)}`);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (over > 0) out.push(`sideways scroll: ${over} px`);
  return out;
}

(async () => {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const report = {};
  for (const file of pages) {
    for (const view of views.split(',')) {
      const [width, colorScheme] = view.split(' ');
      const context = await browser.newContext({ viewport: { width: Number(width), height: 844 }, colorScheme, reducedMotion: 'reduce' });
      const page = await context.newPage();
      const said = [];
      const meant = m => !served(file) || (['error', 'warning'].includes(m.type()) && !m.location().url.startsWith(MATH));
      page.on('console', m => meant(m) && said.push(`console: ${m.text()}`));
      page.on('pageerror', e => said.push(`error: ${e.message}`));
      if (served(file)) await page.route(url => url.host !== new URL(file).host, request => request.abort());
      const start = Date.now();
      await page.goto(served(file) ? file : `file://${file}`, { waitUntil: file.includes('?') ? 'networkidle' : 'load', timeout: 120000 });
      const loaded = Date.now() - start;
      const shot = process.env.CALIBRANT_SHOTS;
      const name = `${called(file)} ${view}`;
      if (shot) await page.screenshot({ path: path.join(shot, `${name.replaceAll(/[ /]/g, '-')}.png`), fullPage: true });
      report[name] = [...await faults(page), ...said, ...(loaded > 3000 && !served(file) ? [`loaded in ${loaded} ms`] : [])];
      await context.close();
    }
  }
  await browser.close();
  console.log(JSON.stringify(report));
})();
