// A character as it is edited: its documents and its settings, saved together.

import { changes, type Source, type Stored } from '../../documents/draft.svelte'
import { same, type Doc } from '../../documents/path'
import type { CharacterSettings, Dialect, FullCharacter } from '../../lib/types'
import { characters } from '../../state/characters.svelte'
import { rest } from '../../state/server'

export interface Edited {
  roleCard: Doc | null
  worldBook: Doc | null
  preset: Doc | null
  authorNote: Doc | null
  regexScripts: unknown
  dialect: Dialect
  /** The user's tags; absent on servers without them. */
  tags?: string[]
  settings: CharacterSettings
}

function stored(c: FullCharacter, settings: CharacterSettings): Stored<Edited> {
  characters.put(c)
  return {
    value: {
      roleCard: (c.roleCard ?? null) as Doc | null,
      worldBook: (c.worldBook ?? null) as Doc | null,
      preset: (c.preset ?? null) as Doc | null,
      authorNote: (c.authorNote ?? null) as Doc | null,
      regexScripts: c.regexScripts ?? null,
      dialect: c.dialect,
      tags: c.tags,
      settings,
    },
    version: c.version,
  }
}

export const source = (id: string): Source<Edited> => ({
  async load(): Promise<Stored<Edited>> {
    const path = { id }
    const [c, settings] = await Promise.all([rest.get('/characters/{id}', { path }), rest.get('/characters/{id}/settings', { path })])
    return stored(c, settings)
  },
  async save(value: Edited, before: Stored<Edited>): Promise<Stored<Edited>> {
    const path = { id }
    const { settings: _, ...changed } = changes(value, before.value)
    let version = before.version
    let settings = before.value.settings
    if (Object.keys(changed).length > 0) version = (await rest.patch('/characters/{id}', { path, body: { ...(changed as object), ifVersion: version } })).version
    if (!same(value.settings, settings)) settings = await rest.put('/characters/{id}/settings', { path, body: { ...value.settings, ifVersion: version } })
    return stored(await rest.get('/characters/{id}', { path }), settings)
  },
  heard: (e) => (e.ev === 'character.updated' && e.data.characterId === id ? e.data.version : e.ev === 'character.deleted' && e.data.characterId === id ? 'gone' : undefined),
})
