#!/usr/bin/env bash
# marked-cjk-friendly 0.1.2 (newest) with marked 18.2.1, 2026-11.
# One would guess, and its README says: it changes Chinese, Japanese and Korean text, and
# no other. In fact it replaces marked's tokenizer of emphasis by one of its own, written
# after an older marked: English text with one star too many is shown differently, both
# ways. Nor does it help emphasis that ends with a quotation mark before an English word.
# Here: the page shows role play in all these languages, so it has rules of its own.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent marked@18.2.1 marked-cjk-friendly@0.1.2
cat >check.mjs <<'JS'
import { Marked } from 'marked'
import friendly from 'marked-cjk-friendly'
const plain = new Marked(), extended = new Marked(friendly())
const show = (text) => {
  const [a, b] = [plain.parseInline(text), extended.parseInline(text)]
  console.log(`${JSON.stringify(text)}\n  marked alone:   ${a}\n  with extension: ${b}`)
  return a === b
}
console.log('marked 18.2.1, marked-cjk-friendly 0.1.2')
const chinese = show('**重要：**内容')
const fewer = show('**"Stop!"* she said')
const more = show('a*b**')
const quoted = show('*"Come."*she said')
const known = !chinese && !fewer && !more && quoted
console.log(known ? 'English text without any CJK character changes.' : 'The behaviour has changed.')
process.exit(known ? 0 : 1)
JS
node check.mjs
