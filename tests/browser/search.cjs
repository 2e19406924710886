// Asks the search of the site; prints one JSON object: words -> addresses of the pages found, best first.
// node search.cjs NODE_MODULES BROWSER ADDRESS WORDS...
const path = require('path');

const [modules, executablePath, address, ...asked] = process.argv.slice(2);
const { chromium } = require(path.join(modules, 'playwright-core'));

(async () => {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const page = await browser.newPage();
  const found = {};
  for (const words of asked) {
    await page.goto(`${address}/search.html?q=${encodeURIComponent(words)}`);
    await page.waitForSelector('.search-summary', { state: 'attached' });
    await page.waitForFunction(() => / (\d+|one) /.test(document.querySelector('.search-summary').textContent));
    found[words] = await page.$$eval('#search-results ul.search > li a', links => links.map(a => new URL(a.href).pathname.slice(1)));
  }
  await browser.close();
  console.log(JSON.stringify(found));
})();
