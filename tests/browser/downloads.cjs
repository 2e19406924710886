// Presses every download of a page, sorts and filters its tables; prints what came as one JSON object.
// node downloads.cjs NODE_MODULES BROWSER FOLDER PAGE [WORD]: only the buttons of that word, if there is one
const fs = require('fs');
const path = require('path');

const [modules, executablePath, folder, file, word] = process.argv.slice(2);
const { chromium } = require(path.join(modules, 'playwright-core'));

(async () => {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const context = await browser.newContext({ acceptDownloads: true, viewport: { width: 1280, height: 900 } });
  const said = [], asked = [], files = [];
  const opened = async () => {
    const page = await context.newPage();
    page.on('console', m => said.push(m.text()));
    page.on('pageerror', e => said.push(`error: ${e.message}`));
    page.on('request', r => asked.push(r.url().slice(0, 40)));
    await page.goto(`file://${file}`);
    await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
    return page;
  };
  let page = await opened();
  const count = (await page.$$('.tools button')).length;
  for (let i = 0, taken = 0; i < count; i++) {
    const made = (await page.$$('.tools button'))[i];
    if (word && (await made.textContent()) !== word) continue;
    const [download] = await Promise.all([page.waitForEvent('download', { timeout: 20000 }), made.click()]);
    const name = `${files.length}-${download.suggestedFilename()}`;
    await download.saveAs(path.join(folder, name));
    files.push({ name, size: fs.statSync(path.join(folder, name)).size });
    taken += 1;
    if (taken % 8 === 0) page = await opened();  // a browser asks before a tab saves more than ten files
  }
  const tables = await page.evaluate(async () => {
    const out = [];
    for (const table of document.querySelectorAll('section:not(#summary) table')) {
      const tools = table.parentNode.previousElementSibling, filter = tools && tools.querySelector('input[type=search]');
      const buttons = [...table.querySelectorAll('thead button')], told = { heads: table.tHead.rows[0].cells.length, buttons: buttons.length, rows: table.tBodies[0].rows.length };
      if (filter) {
        filter.value = '\u0007 nothing has this';
        filter.dispatchEvent(new Event('input'));
        told.none = [...table.tBodies[0].rows].filter(r => !r.hidden).length;
        filter.value = '';
        filter.dispatchEvent(new Event('input'));
        told.some = [...table.tBodies[0].rows].filter(r => !r.hidden).length;
      }
      told.sorted = buttons.map(b => { b.click(); return b.closest('th').getAttribute('aria-sort'); });
      told.arrow = buttons.map(b => getComputedStyle(b, '::after').content);
      out.push(told);
    }
    return out;
  });
  const title = await page.title();
  await browser.close();
  console.log(JSON.stringify({ said, asked, files, tables, title }));
})();
