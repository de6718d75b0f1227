// Research that chats have asked for and that is not over. It is read when a chat is first
// shown, and then kept up to date.

import { attempt } from '../lib/notes.svelte'
import type { ResearchHead } from '../lib/types'
import { listen, rest } from './server'

const most = 50 // newest ones that are read; 20 can be open

let list = $state.raw<ResearchHead[] | undefined>()
let turn = 0

async function read() {
  const mine = ++turn
  const got = await attempt(() => rest.get('/research', { query: { limit: most } }))
  if (got && mine === turn) list = got.items.filter((r) => r.conversationId && (r.state === 'queued' || r.state === 'running'))
}

listen({
  snapshot: () => void (list && read()),
  event: (e) => {
    if (!list) return
    if (e.ev === 'research.started' && e.conversationId) void read()
    if (e.ev === 'research.done' || e.ev === 'research.failed' || e.ev === 'research.removed') {
      turn++ // a list that is being read does not know it
      list = list.filter((r) => r.id !== e.data.researchId)
    }
    if (e.ev === 'research.step') list = list.map((r) => (r.id === e.data.researchId ? { ...r, state: 'running' } : r))
  },
})

export const researching = {
  load() {
    if (!list && turn === 0) void read()
  },
  /** of returns what a chat has asked for and what is not over, the oldest first. */
  of: (conversationId: string) => (list ?? []).filter((r) => r.conversationId === conversationId).reverse(),
  /** start researches a question for a chat, to which the answer comes as a message. */
  async start(conversationId: string, question: string): Promise<boolean> {
    const got = await attempt(() => rest.post('/research', { body: { conversationId, question, start: true } }))
    if (got && list && !list.some((r) => r.id === got.research.id)) list = [got.research, ...list]
    return got !== undefined
  },
}
