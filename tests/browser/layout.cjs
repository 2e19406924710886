// Looks for text that is cut off or runs out of its place, at five widths; prints one JSON object: "page width" -> faults.
// node layout.cjs NODE_MODULES BROWSER PAGE...
const path = require('path');

const [modules, executablePath, ...pages] = process.argv.slice(2);
const { chromium } = require(path.join(modules, 'playwright-core'));

function cut() {
  const out = [], name = e => `${e.tagName.toLowerCase()}.${(e.getAttribute('class') || '').split(' ')[0]} "${e.textContent.trim().slice(0, 40)}"`;
  const wide = document.documentElement.clientWidth, range = document.createRange();
  if (document.documentElement.scrollWidth > wide) out.push(`sideways scroll: ${document.documentElement.scrollWidth - wide} px`);
  document.body.querySelectorAll('*').forEach(e => {
    const style = getComputedStyle(e);
    if (e.closest('.hush, .skip, script, style, title') || !e.getClientRects().length) return;
    const box = e.getBoundingClientRect();
    if (box.width <= 1 || box.right < -500 || e.closest('.w') && e.closest('.w').getBoundingClientRect().width <= 1) return;
    if (style.overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1 && e.clientWidth) out.push(`cut: ${name(e)} ${e.scrollWidth} > ${e.clientWidth}`);
    if (style.overflowY === 'hidden' && e.scrollHeight > e.clientHeight + 2 && e.clientHeight > 2) out.push(`cut below: ${name(e)}`);
    [...e.childNodes].filter(n => n.nodeType === 3 && n.data.trim()).forEach(n => {
      range.selectNodeContents(n);
      const cell = e.closest('td, th');
      for (const r of range.getClientRects()) {
        if (r.right > wide + 1 || r.left < -1) out.push(`off the page: ${name(e)}`);
        if (cell && !e.closest('svg') && (r.right > cell.getBoundingClientRect().right + 1.5 || r.left < cell.getBoundingClientRect().left - 1.5)) out.push(`out of its cell: ${name(e)}`);
      }
    });
    if (e.matches('svg text') && (box.right > wide + 1 || box.left < -1)) out.push(`off the page: ${name(e)}`);
  });
  return [...new Set(out)];
}

(async () => {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const report = {};
  for (const file of pages) {
    for (const width of [360, 390, 768, 1280, 1920]) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, reducedMotion: 'reduce' });
      await page.goto(`file://${file}`);
      const said = await page.evaluate(cut);
      await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
      report[`${path.basename(file, '.html')} ${width}`] = [...new Set([...said, ...await page.evaluate(cut)])];
      await page.close();
    }
  }
  await browser.close();
  console.log(JSON.stringify(report));
})();
