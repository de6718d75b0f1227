// The free-standing world books, presets, regex scripts, personas and templates, without
// their documents. A kind is read when it is first needed, and then kept up to date.

import { SvelteMap } from 'svelte/reactivity'
import { attempt } from '../lib/notes.svelte'
import type { ResourceHead } from '../lib/types'
import { listen, rest } from './server'

export type Kind = ResourceHead['kind']
export const kinds: Kind[] = ['worldbook', 'preset', 'regexscript', 'persona', 'template']

/** The paths of a kind in the API. */
export const pathOf = { worldbook: '/worldbooks', preset: '/presets', regexscript: '/regexscripts', persona: '/personas', template: '/templates' } as const

const lists = new SvelteMap<Kind, ResourceHead[]>()
const reading = new Set<Kind>()

async function readAll(kind: Kind) {
  if (reading.has(kind)) return
  reading.add(kind)
  await attempt(async () => {
    let all: ResourceHead[] = []
    let cursor: string | null | undefined
    do {
      const page = await rest.get(pathOf[kind], { query: { limit: 200, ...(cursor && { cursor }) } })
      all = [...all, ...page.items]
      cursor = page.nextCursor
      lists.set(kind, all)
    } while (cursor)
  })
  reading.delete(kind)
}

listen({
  snapshot: () => {
    for (const kind of lists.keys()) void readAll(kind)
  },
  event: (e) => {
    if (e.ev !== 'resource.updated' && e.ev !== 'resource.deleted') return
    const { kind, id } = e.data
    if (kind === 'settings' || kind === 'provider' || !id || !lists.has(kind)) return
    if (e.ev === 'resource.deleted') resources.drop(kind, id)
    else if ((resources.get(kind, id)?.version ?? 0) < (e.data.version ?? 0)) void resources.refresh(kind, id)
  },
})

export const resources = {
  /** The list of a kind, newest first; undefined until it was read. */
  list(kind: Kind): ResourceHead[] | undefined {
    return lists.get(kind)
  },
  load(kind: Kind) {
    if (!lists.has(kind)) void readAll(kind)
  },
  get(kind: Kind, id: string): ResourceHead | undefined {
    return lists.get(kind)?.find((r) => r.id === id)
  },
  put(r: ResourceHead) {
    const list = lists.get(r.kind)
    if (!list) return
    const known = list.some((old) => old.id === r.id)
    lists.set(r.kind, known ? list.map((old) => (old.id === r.id && old.version <= r.version ? r : old)) : [r, ...list])
  },
  drop(kind: Kind, id: string) {
    const list = lists.get(kind)
    if (list) lists.set(kind, list.filter((r) => r.id !== id))
  },
  async refresh(kind: Kind, id: string) {
    const r = await rest.get(`${pathOf[kind]}/{id}` as '/worldbooks/{id}', { path: { id } }).catch(() => null)
    if (r) this.put(r)
  },
}
