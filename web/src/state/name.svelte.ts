// The user's name: asked for once, and offered again where a memory has learnt one.

import { plain } from '../lib/format'
import { nameIn } from '../lib/nameIn'
import { rest } from './server'
import { userSettings } from './settings.svelte'

let learnt = $state('')

export const userName = {
  /** The name that a memory has learnt; empty if there is none. */
  get learnt() {
    return learnt
  },
  /** True if the user has no name yet. */
  get missing(): boolean {
    const s = userSettings.current
    return s !== null && !s.userName && !s.personaId
  },
  /** True if the question is to be shown: it has not been put off. */
  get wanted(): boolean {
    if (!this.missing) return false
    const declined = userSettings.current?.nameDeclined
    return declined === undefined || (learnt !== '' && declined !== learnt)
  },
  /** look reads whether a character has learnt the name. */
  async look(characterId: string) {
    const page = await rest.get('/characters/{id}/memories', { path: { id: characterId }, query: { subject: 'user', kind: 'profile', limit: 50 } }).catch(() => null)
    for (const m of page?.items ?? []) {
      const name = 'text' in m ? nameIn(plain(m.text)) : ''
      if (name) return void (learnt = name)
    }
  },
  later: () => userSettings.change({ nameDeclined: learnt }),
  store: (name: string) => userSettings.change({ userName: name }),
}
