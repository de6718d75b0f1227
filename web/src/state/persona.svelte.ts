// The picture of the persona that the user plays in a chat. It is in the persona's
// document, which lists do not have.

import { SvelteMap } from 'svelte/reactivity'
import { text } from '../documents/path'
import type { Conversation } from '../lib/types'
import { small } from '../markdown/picture'
import { resources } from './resources.svelte'
import { rest } from './server'
import { userSettings } from './settings.svelte'

const pictures = new SvelteMap<string, string>() // by id and version

/** playedIn is the persona in a chat: its own, one of the character, or the user's default. */
function playedIn(c: Conversation) {
  const list = resources.list('persona') ?? []
  const id = c.personaId || userSettings.current?.personaId
  const bound = c.personaId ? undefined : list.find((p) => p.bindAll || p.characterIds.includes(c.characterId))
  return bound ?? list.find((p) => p.id === id)
}

/** personaPicture is empty if the persona in a chat has none, or none that may be shown. */
export const personaPicture = {
  of(c: Conversation | undefined): string {
    const p = c && playedIn(c)
    return (p && pictures.get(`${p.id} ${p.version}`)) ?? ''
  },
  /** load reads what is needed for a chat and is not known yet. */
  async load(c: Conversation | undefined) {
    resources.load('persona')
    userSettings.load()
    const p = c && playedIn(c)
    if (!p || pictures.has(`${p.id} ${p.version}`)) return
    pictures.set(`${p.id} ${p.version}`, '') // it is being read
    const got = await rest.get('/personas/{id}', { path: { id: p.id } }).catch(() => undefined)
    const picture = text(got?.document, ['avatar'])
    pictures.set(`${p.id} ${p.version}`, small(picture) ? picture : '')
  },
}
