// All characters of the user, without their documents.

import { attempt } from '../lib/notes.svelte'
import type { Character } from '../lib/types'
import { deletion } from './deletion.svelte'
import { listen, rest } from './server'

let list = $state.raw<Character[]>([])
const visible = $derived(list.filter((c) => !deletion.hides(c.id)))
const current = $derived(visible.filter((c) => !c.archived))
const byId = $derived(new Map(list.map((c) => [c.id, c])))

listen({
  snapshot: (s) => {
    list = s.characters
    void others(list.length)
  },
  event: (e) => {
    if (e.ev === 'character.deleted') list = list.filter((c) => c.id !== e.data.characterId)
    if (e.ev === 'character.created' || e.ev === 'character.updated') void characters.refresh(e.data.characterId)
  },
})

/** others loads the characters beyond the thousand of a snapshot. */
async function others(known: number) {
  for (let cursor: string | null = known < 1000 ? null : ''; cursor !== null; ) {
    const page: { items: Character[]; nextCursor: string | null } | undefined = await attempt(() => rest.get('/characters', { query: { limit: 200, ...(cursor && { cursor }) } }))
    const more = page?.items.filter((c) => !byId.has(c.id)) ?? []
    if (more.length > 0) list = [...list, ...more]
    cursor = page?.nextCursor ?? null
  }
}

export const characters = {
  /** list has those that are not archived. */
  get list() {
    return current
  },
  get all() {
    return visible
  },
  get(id: string): Character | undefined {
    return byId.get(id)
  },
  name(id: string): string {
    return byId.get(id)?.name ?? ''
  },
  put(c: Character) {
    list = byId.has(c.id) ? list.map((old) => (old.id === c.id && old.version <= c.version ? c : old)) : [c, ...list]
  },
  async refresh(id: string) {
    const c = await rest.get('/characters/{id}', { path: { id } }).catch(() => null)
    if (c) this.put(c)
  },
}
