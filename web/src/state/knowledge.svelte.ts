// The knowledge bases that the user may read. They are read when they are first needed,
// and then kept up to date.

import { attempt } from '../lib/notes.svelte'
import type { KnowledgeBase } from '../lib/types'
import { listen, rest } from './server'

let list = $state.raw<KnowledgeBase[] | undefined>()
let reading = 0

async function readAll() {
  const turn = ++reading
  await attempt(async () => {
    const all: KnowledgeBase[] = []
    let cursor: string | null | undefined
    do {
      const page = await rest.get('/knowledge-bases', { query: { limit: 200, ...(cursor && { cursor }) } })
      all.push(...page.items)
      cursor = page.nextCursor
    } while (cursor && turn === reading)
    if (turn === reading) list = all
  })
}

listen({
  snapshot: () => void (list && readAll()),
  event: (e) => {
    if (!list) return
    if (e.ev === 'knowledge.deleted') bases.drop(e.data.knowledgeBaseId)
    else if (e.ev === 'knowledge.updated') soon(e.data.knowledgeBaseId)
  },
})

const changed = new Set<string>()

/** soon reads a knowledge base again; many changes at once, such as uploads, are one. */
function soon(id: string) {
  if (changed.has(id)) return
  changed.add(id)
  setTimeout(() => {
    changed.delete(id)
    void bases.refresh(id)
  }, 300)
}

export const bases = {
  /** The knowledge bases, newest first; undefined until they were read. */
  get list() {
    return list
  },
  load() {
    if (!list && reading === 0) void readAll()
  },
  /** reload reads all again: no event tells that the languages of files are known. */
  reload: readAll,
  get(id: string): KnowledgeBase | undefined {
    return list?.find((b) => b.id === id)
  },
  put(b: KnowledgeBase) {
    if (!list) return
    const known = list.some((old) => old.id === b.id)
    list = known ? list.map((old) => (old.id === b.id && old.version <= b.version ? b : old)) : [b, ...list]
  },
  drop(id: string) {
    list = list?.filter((b) => b.id !== id)
  },
  /** refresh reads one again; it may have been shared, or not be any more. */
  async refresh(id: string) {
    const b = await rest.get('/knowledge-bases/{id}', { path: { id } }).catch((e: { status?: number }) => (e.status === 404 ? null : undefined))
    if (b) this.put(b)
    else if (b === null) this.drop(id)
  },
}

/** fileAt is the address of a file, or of a passage of it: a chunk, and words within it. */
export function fileAt(id: string, chunk = '', quote = ''): string {
  const query = new URLSearchParams({ ...(chunk && { chunk }), ...(quote && { quote: quote.slice(0, 600) }) }).toString()
  return '/files/' + encodeURIComponent(id) + (query && '?' + query)
}
