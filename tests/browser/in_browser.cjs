// Audits a file in the page of docs/browser, without a network once the page says that it is ready.
// node in_browser.cjs NODE_MODULES BROWSER ADDRESS FILE LIMIT FOLDER OTHER
// Prints one JSON object: seconds, what was asked for, what axe-core found, and what came of requests to OTHER.
const fs = require('fs');
const path = require('path');

const [modules, executablePath, address, file, limit, folder, other] = process.argv.slice(2);
const { chromium } = require(path.join(modules, 'playwright-core'));
const axe = fs.readFileSync(path.join(modules, 'axe-core', 'axe.min.js'), 'utf8');
const LONG = 900000;

const sends = to => fetch(to, { method: 'POST', mode: 'no-cors', body: 'rows' }).then(() => 'sent', e => String(e));

async function reached(page, states) {
  await page.waitForFunction(s => s.includes(document.body.dataset.state), [...states, 'failed'], { timeout: LONG });
  const fault = await page.textContent('#fault');
  if (fault) throw new Error(fault);
}

async function look(page, name) {
  const found = [];
  for (const width of [1280, 390]) {
    for (const colorScheme of ['light', 'dark']) {
      await page.setViewportSize({ width, height: 844 });
      await page.emulateMedia({ colorScheme });
      await page.evaluate(axe);
      const run = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'], iframes: false }));
      found.push(...run.violations.map(v => `${name} ${width} ${colorScheme} ${v.id}: ${v.nodes[0].html.slice(0, 160)}`));
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (over > 0) found.push(`${name} ${width} ${colorScheme}: ${over} px sideways`);
      await page.screenshot({ path: path.join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
  }
  return found;
}

async function audited(page, context, asked) {
  const out = { seconds: {} };
  let since = Date.now();
  const lap = what => { out.seconds[what] = (Date.now() - since) / 1000; since = Date.now(); };
  await reached(page, ['ready']);
  lap('load');
  await context.setOffline(true);
  const before = asked.length;
  const text = fs.readFileSync(file, 'utf8');
  await page.evaluate(([held, name]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([held], name));
    document.getElementById('drop').dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
  }, [text, path.basename(file)]);
  await reached(page, ['seen']);
  lap('look');
  out.guessed = await page.evaluate(() => ({ label: document.getElementById('label').value, score: document.getElementById('score').value }));
  out.faults = await look(page, 'asking');
  await page.fill('#limit', limit);
  since = Date.now();
  await page.click('#run');
  await reached(page, ['done']);
  lap('audit');
  out.told = await page.textContent('#told');
  out.headline = await page.frameLocator('#report').locator('h1').textContent();
  out.faults.push(...await look(page, 'report'));
  for (const id of ['html', 'json']) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(`#${id}`)]);
    await download.saveAs(path.join(folder, `audit.${id}`));
  }
  out.later = asked.slice(before).filter(url => !url.startsWith('blob:'));
  await context.setOffline(false);
  return out;
}

(async () => {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const context = await browser.newContext({ acceptDownloads: true, viewport: { width: 1280, height: 844 }, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const asked = [], errors = [];
  context.on('request', r => asked.push(r.url()));
  page.on('pageerror', e => errors.push(e.message));
  await page.goto(address);
  const out = file ? await audited(page, context, asked) : {};
  while (!page.workers().length) await page.waitForTimeout(50);
  out.asked = [...asked];
  out.page = await page.evaluate(sends, `${other}/page`);
  out.worker = await page.workers()[0].evaluate(sends, `${other}/worker`);
  out.errors = errors;
  await browser.close();
  console.log(JSON.stringify(out));
})().catch(e => { console.error(e); process.exit(1); });
