// The chats with one character, the newest first, also those that the list of chats has
// not read yet.

import { plain, time } from '../../lib/format'
import { attempt } from '../../lib/notes.svelte'
import type { Conversation } from '../../lib/types'
import { characters } from '../../state/characters.svelte'
import { chats } from '../../state/chats.svelte'
import { rest } from '../../state/server'

const page = 200

/** titleOf tells the chats with a character apart. */
export const titleOf = (c: Conversation) => `${plain(c.title || characters.name(c.characterId))} · ${time(c.lastMessage?.createdAt ?? c.createdAt)}`

export function chatsOf(characterId: () => string) {
  let older = $state.raw<Conversation[]>([])
  let loaded = $state(false)
  const list = $derived.by(() => {
    const id = characterId()
    const newest = chats.list.filter((c) => c.characterId === id)
    const known = new Set(newest.map((c) => c.id))
    return [...newest, ...older.filter((c) => !known.has(c.id))]
  })
  $effect(() => {
    const id = characterId()
    void attempt(async () => {
      older = (await rest.get('/conversations', { query: { characterId: id, limit: page } })).items
      loaded = true
    })
  })
  return {
    get list() {
      return list
    },
    get loaded() {
      return loaded
    },
  }
}
