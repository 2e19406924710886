// Finds running text that ends beyond the window, tables, code and formulas apart; prints one JSON object: page -> faults.
// node clipped.cjs NODE_MODULES BROWSER ADDRESS WIDTH PAGE...
const path = require('path');

const [modules, executablePath, address, width, ...pages] = process.argv.slice(2);
const { chromium } = require(path.join(modules, 'playwright-core'));

function beyond() {
  const wide = document.documentElement.clientWidth, out = [];
  document.querySelectorAll('.bd-article :is(p, li, dt, dd, h1, h2, h3)').forEach(e => {
    if (!e.getClientRects().length || e.getBoundingClientRect().right <= wide + 1 || e.closest('table, pre, .math')) return;
    out.push(`${e.tagName.toLowerCase()} ends at ${Math.round(e.getBoundingClientRect().right)}: ${e.textContent.trim().slice(0, 40)}`);
  });
  return out;
}

(async () => {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const page = await browser.newPage({ viewport: { width: Number(width), height: 900 }, reducedMotion: 'reduce' });
  const found = {};
  for (const name of pages) {
    await page.goto(`${address}/${name}.html`);
    found[name] = await page.evaluate(beyond);
  }
  await browser.close();
  console.log(JSON.stringify(found));
})();
