// All characters of the user, without their documents.

import type { Character } from '../lib/types'
import { listen, rest } from './server'

let list = $state.raw<Character[]>([])
const byId = $derived(new Map(list.map((c) => [c.id, c])))

listen({
  snapshot: (s) => void (list = s.characters),
  event: (e) => {
    if (e.ev === 'character.deleted') list = list.filter((c) => c.id !== e.data.characterId)
    if (e.ev === 'character.created' || e.ev === 'character.updated') void characters.refresh(e.data.characterId)
  },
})

export const characters = {
  get list() {
    return list
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
