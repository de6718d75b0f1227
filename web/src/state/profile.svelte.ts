// Which replies had facts of the user's profile in their prompts, by generation: events tell it
// of new ones, and the server is asked about the last one of a chat.

import { SvelteMap } from 'svelte/reactivity'
import type { Message } from '../lib/types'
import { listen, rest } from './server'

const known = new SvelteMap<string, boolean>()

listen({
  event: (e) => {
    if (e.ev === 'gen.context') known.set(e.generationId, e.data.profile.length > 0)
  },
})

const generation = (m: Message) => m.swipes[m.swipeIndex]?.generationId ?? ''

export const profile = {
  /** used returns whether the shown text was written with facts of the profile, as far as it is known. */
  used: (m: Message): boolean => known.get(generation(m)) ?? false,
  /** ask reads what is not known about a message. */
  async ask(m: Message) {
    const id = generation(m)
    if (!id || known.has(id)) return
    known.set(id, false) // it is being read
    const page = await rest.get('/messages/{id}/memories', { path: { id: m.id } }).catch(() => null)
    if (page?.items.some((f) => f.signals['profile'])) known.set(id, true)
  },
}
