// Messages that the server has not confirmed yet. They are kept over a reload and sent
// again under the same key, so each is stored once.

import { Failure, newKey } from '@nodest/client'
import { storage } from '../lib/storage'
import { errorText } from '../lib/words'
import { connection, listen } from './server'
import { session } from './session.svelte'

export interface Unsent {
  key: string
  userId: string
  conversationId: string
  text: string
  at: number
  /** Why the server refused it. */
  problem?: string
}

// One item of the storage each: another tab may have some of its own.
const prefix = 'nodest.unsent.'
let list = $state.raw<Unsent[]>(read())

function read(): Unsent[] {
  const found = storage.names(prefix).map(parsed)
  return found.filter((m) => m !== undefined).sort((a, b) => a.at - b.at)
}

/** parsed reads a stored message; undefined if it is none. */
function parsed(name: string): Unsent | undefined {
  try {
    const m = JSON.parse(storage.get(name) ?? '')
    return prefix + m.key === name && ['userId', 'conversationId', 'text'].every((member) => typeof m[member] === 'string') && Number.isFinite(m.at) ? m : undefined
  } catch {
    return undefined
  }
}

function put(m: Unsent) {
  storage.set(prefix + m.key, JSON.stringify(m))
  list = list.some((old) => old.key === m.key) ? list.map((old) => (old.key === m.key ? m : old)) : [...list, m]
}

let resent = false
listen({
  state: (s) => {
    if (s !== 'open' || resent) return
    resent = true // once after the page was loaded: later the connection does it
    for (const m of list) if (!m.problem && m.userId === session.user?.id) void outbox.deliver(m)
  },
})

export const outbox = {
  of(conversationId: string): Unsent[] {
    return list.filter((m) => m.conversationId === conversationId)
  },
  send(conversationId: string, text: string) {
    const m = { key: newKey(), userId: session.user?.id ?? '', conversationId, text, at: Date.now() }
    put(m)
    void this.deliver(m)
  },
  async deliver(m: Unsent) {
    try {
      await connection.send('chat.send', { conversationId: m.conversationId, text: m.text, clientMsgId: m.key, whenBusy: 'queue' }, m.key)
      this.drop(m.key)
    } catch (e) {
      if (!(e instanceof Failure)) throw e
      if (e.code !== 'cancelled') put({ ...m, problem: errorText(e) }) // cancelled: the page is being left
    }
  },
  again(m: Unsent) {
    this.drop(m.key)
    this.send(m.conversationId, m.text)
  },
  drop(key: string) {
    storage.remove(prefix + key)
    list = list.filter((m) => m.key !== key)
  },
}
