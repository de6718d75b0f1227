#!/usr/bin/env bash
# svelte 5.57.3, bundled by rolldown 1.2.19 (vite 8.3), in Chromium, 2026-11.
# One would guess, and the documentation says: with the compiler option fragments: 'tree',
# made for pages that require trusted types, no text of HTML reaches the DOM. In fact
# {@render …} as a child of <select> has the page find out whether the browser takes rich
# options: it sets innerHTML, and so the bundle makes a policy of trusted types as soon as
# it is loaded. Where the page allows no policy the whole script fails, before anything is
# shown. The same options written in the <select> itself need neither; nothing warns.
# Here: the page is served with trusted-types 'none', so a snippet of options that two
# selects share would leave it blank. web/svelte.config.js sets the option.
# Needs Chromium (CHROMIUM names it) and npm.
set -euo pipefail
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-headless-shell || command -v google-chrome)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent svelte@5.57.3 rolldown@1.2.19 puppeteer-core@24.31.0
cat >direct.svelte <<'SVELTE'
<select>{#each ['a', 'b'] as v}<option value={v}>{v}</option>{/each}</select>
SVELTE
cat >render.svelte <<'SVELTE'
{#snippet options()}{#each ['a', 'b'] as v}<option value={v}>{v}</option>{/each}{/snippet}
<select>{@render options()}</select>
SVELTE
cat >check.mjs <<'JS'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { compile, VERSION } from 'svelte/compiler'
import { rolldown } from 'rolldown'
import puppeteer from 'puppeteer-core'

const compiled = {}, bundles = {}
for (const name of ['direct', 'render']) {
  const { js, warnings } = compile(readFileSync(`${name}.svelte`, 'utf8'), { filename: `${name}.svelte`, generate: 'client', fragments: 'tree' })
  compiled[name] = { lines: js.code.split('\n').map((l) => l.trim()), warnings: warnings.length }
  writeFileSync(`${name}.js`, js.code)
  writeFileSync(`${name}.entry.js`, `import { mount } from 'svelte'\nimport App from './${name}.js'\nmount(App, { target: document.body })\ndocument.body.append('loaded')`)
  const bundle = await rolldown({ input: `${name}.entry.js`, platform: 'browser', resolve: { conditionNames: ['browser', 'production', 'import'] } })
  bundles[name] = (await bundle.generate({ format: 'iife' })).output[0].code
}
const only = (a, b) => compiled[a].lines.filter((l) => l && !compiled[b].lines.includes(l) && /\(select,/.test(l))
console.log(`svelte ${VERSION}, fragments: 'tree'`)
console.log('compiled from options that are written in the select:', only('direct', 'render').join('  '))
console.log('compiled from {@render …} in the select:             ', only('render', 'direct').join('  '))

const server = createServer((req, res) => {
  const script = /^\/(\w+)\.js$/.exec(req.url)
  if (script) return res.setHeader('Content-Type', 'text/javascript').end(bundles[script[1]])
  res.setHeader('Content-Type', 'text/html').setHeader('Content-Security-Policy', "require-trusted-types-for 'script'; trusted-types 'none'")
  res.end(`<!doctype html><body><script src="${req.url}.js"></script>`)
}).listen(0, '127.0.0.1')
const browser = await puppeteer.launch({ executablePath: process.argv[2], args: ['--no-sandbox'] })
const seen = {}
for (const name of ['direct', 'render']) {
  const page = await browser.newPage()
  let failure = 'no error'
  page.on('pageerror', (e) => (failure = e.message.split('\n')[0]))
  await page.goto(`http://127.0.0.1:${server.address().port}/${name}`)
  const options = (await page.$$('option')).length
  const loaded = await page.evaluate(() => document.body.textContent.includes('loaded'))
  seen[name] = { options, loaded, policy: bundles[name].includes('createPolicy('), html: bundles[name].includes('.innerHTML = ') }
  console.log(`${name}: ${options} options, ${failure}; the bundle sets innerHTML: ${seen[name].html}, makes a policy: ${seen[name].policy}`)
}
await browser.close()
server.close()
const known =
  seen.direct.options === 2 && seen.direct.loaded && !seen.direct.policy &&
  seen.render.options === 0 && !seen.render.loaded && seen.render.policy && compiled.render.warnings === 0
console.log(known ? 'Only the rendered snippet needs HTML text, and the page fails.' : 'The behaviour has changed.')
process.exit(known ? 0 : 1)
JS
node check.mjs "$chromium"
