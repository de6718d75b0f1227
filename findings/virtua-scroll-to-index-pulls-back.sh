#!/usr/bin/env bash
# virtua 0.54.2 (newest) with React 19.2 in Chromium, 2026-11.
# One would guess: scrollToIndex has ended when it has scrolled, or at the latest when
# something else scrolls the list. In fact each item that is measured within 150 ms of the
# last one makes it scroll to its index again, in a list whose heights are guessed. Neither
# scrollTo of the element nor a list that gets longer meanwhile ends it: what the program
# has just shown is left again. Only another scroll through virtua's own handle does.
# Here: a chat that was led to a message far up jumped back there after it had gone to the
# end for the reader's own message. web/src/views/chat/Messages.svelte goes there by both.
# Needs Chromium (CHROMIUM names it) and npm.
set -euo pipefail
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent virtua@0.54.2 react@19.2.0 react-dom@19.2.0 esbuild@0.25.12 puppeteer-core@24.31.0
cat >page.jsx <<'JS'
import { createElement as h, createRef } from 'react'
import { createRoot } from 'react-dom/client'
import { flushSync } from 'react-dom'
import { VList } from 'virtua'
const frames = (n) => new Promise((done) => (n ? requestAnimationFrame(() => frames(n - 1).then(done)) : done()))
const quiet = () => new Promise((done) => setTimeout(done, 500))

// go scrolls to an item far up, and one frame later to the end, in one of two ways.
window.go = async (way) => {
  const div = document.body.appendChild(document.createElement('div'))
  const root = createRoot(div)
  const list = createRef()
  const items = Array.from({ length: 400 }, (_, i) => h('div', { key: i, style: { height: 40 + ((i * 37) % 300) } }, i))
  flushSync(() => root.render(h(VList, { ref: list, style: { height: 600 } }, items)))
  await quiet()
  const element = div.firstElementChild
  const rest = () => Math.round(element.scrollHeight - element.scrollTop - element.clientHeight)
  list.current.scrollToIndex(120)
  await frames(1)
  if (way === 'handle') list.current.scrollToIndex(399, { align: 'end' })
  else element.scrollTo({ top: element.scrollHeight })
  const before = rest()
  await quiet()
  const after = rest()
  const first = list.current.findItemIndex(list.current.scrollOffset)
  root.unmount()
  div.remove()
  return { before, after, first }
}
JS
npx esbuild page.jsx --bundle --outfile=page.js --log-level=error --define:process.env.NODE_ENV='"production"'
cat >check.mjs <<'JS'
import puppeteer from 'puppeteer-core'
const browser = await puppeteer.launch({ executablePath: process.argv[2], args: ['--no-sandbox'] })
const page = await browser.newPage()
await page.goto('about:blank')
await page.addScriptTag({ path: 'page.js' })
const show = (name, r) => console.log(`${name}: ${r.before} px from the end at once, ${r.after} px half a second later, at item ${r.first}`)
console.log('virtua 0.54.2: scrollToIndex(120), and one frame later')
const native = await page.evaluate(() => go('element'))
show('  scrollTo of the element', native)
const own = await page.evaluate(() => go('handle'))
show('  scrollToIndex of the last', own)
await browser.close()
const known = native.before < 2 && native.first === 120 && own.after < 2
console.log(known ? 'Its first scroll is repeated after the list was scrolled by its element.' : 'The behaviour has changed.')
process.exit(known ? 0 : 1)
JS
node check.mjs "$chromium"
