// The contents, the search and the address of this server; without scripts, the page is complete but for them.
const all = (selector, within = document) => [...within.querySelectorAll(selector)]

for (const e of all('.origin')) e.textContent = location.origin
for (const e of all('.socket')) e.textContent = location.origin.replace(/^http/, 'ws')

const contents = document.querySelector('#contents')
if (matchMedia('(max-width: 63.99rem)').matches) contents.open = false
contents.addEventListener('click', (e) => {
  if (e.target.closest('a') && matchMedia('(max-width: 63.99rem)').matches) contents.open = false
})

const field = document.querySelector('#search'), found = document.querySelector('#found')
const items = all('main section, main tr[id]').map((e) => ({ e, text: e.textContent.toLowerCase() }))
const links = new Map(all('#contents li a').map((a) => [a.hash.slice(1), a.parentElement]))

function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
  let n = 0
  for (const { e, text } of items) {
    e.hidden = !words.every((w) => text.includes(w))
    if (links.has(e.id)) links.get(e.id).hidden = e.hidden
    if (!e.hidden) n++
  }
  for (const part of all('main > div')) part.hidden = words.length > 0 && !all('section:not([hidden]), tr[id]:not([hidden])', part).length
  for (const group of all('#contents details')) {
    group.hidden = !all('li:not([hidden])', group).length
    group.open = words.length > 0
  }
  found.textContent = words.length ? (n === 1 ? '1 entry' : n + ' entries') : ''
}
field.parentElement.hidden = false
field.addEventListener('input', search)
if (field.value) search() // after the browser went back
