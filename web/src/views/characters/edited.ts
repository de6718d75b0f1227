// A character as it is edited: its documents and its settings, saved together.

import type { Stored } from '../../documents/draft.svelte'
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

const documents = ['roleCard', 'worldBook', 'preset', 'authorNote', 'regexScripts', 'dialect', 'tags'] as const

export function stored(c: FullCharacter, settings: CharacterSettings): Stored<Edited> {
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

export const source = (id: string) => ({
  async load(): Promise<Stored<Edited>> {
    const path = { id }
    const [c, settings] = await Promise.all([rest.get('/characters/{id}', { path }), rest.get('/characters/{id}/settings', { path })])
    return stored(c, settings)
  },
  async save(value: Edited, before: Stored<Edited>): Promise<Stored<Edited>> {
    const path = { id }
    const changed = Object.fromEntries(documents.filter((d) => !same(value[d], before.value[d])).map((d) => [d, value[d]]))
    let version = before.version
    let settings = before.value.settings
    if (Object.keys(changed).length > 0) version = (await rest.patch('/characters/{id}', { path, body: { ...changed, ifVersion: version } })).version
    if (!same(value.settings, settings)) settings = await rest.put('/characters/{id}/settings', { path, body: { ...value.settings, ifVersion: version } })
    return stored(await rest.get('/characters/{id}', { path }), settings)
  },
})
