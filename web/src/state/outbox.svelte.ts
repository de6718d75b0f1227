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

// Each is an item of the storage, which the tabs of a browser share.
const prefix = 'nodest.unsent.'
let list = $state.raw<Unsent[]>(read())
let sends = $state(0)

function read(): Unsent[] {
  const found = storage.names(prefix).map(parsed)
  return found.filter((m) => m !== undefined).sort((a, b) => a.at - b.at)
}

/** parsed reads a stored message; undefined if it is malformed. */
function parsed(name: string): Unsent | undefined {
  try {
    const m = JSON.parse(storage.get(name) ?? '')
    return prefix + m.key === name && ['userId', 'conversationId', 'text'].every((member) => typeof m[member] === 'string') && Number.isFinite(m.at) ? m : undefined
  } catch {
    return undefined
  }
}

const stored = (key: string) => storage.get(prefix + key) !== null

function put(m: Unsent) {
  storage.set(prefix + m.key, JSON.stringify(m))
  list = read()
}

addEventListener('storage', (e) => {
  if (e.key === null || e.key.startsWith(prefix)) list = read()
})

// Commands wait for the connection, but are cancelled when the sign-in ends.
const underWay = new Set<string>()
listen({
  state: (s) => {
    if (s !== 'open') return
    for (const m of list) if (!m.problem && m.userId === session.user?.id) void outbox.deliver(m)
  },
})

export const outbox = {
  of(conversationId: string): Unsent[] {
    return list.filter((m) => m.conversationId === conversationId)
  },
  /** How many messages were sent from this page. */
  get sends() {
    return sends
  },
  send(conversationId: string, text: string) {
    sends++
    const m = { key: newKey(), userId: session.user?.id ?? '', conversationId, text, at: Date.now() }
    put(m)
    void this.deliver(m)
  },
  async deliver(m: Unsent) {
    if (underWay.has(m.key)) return
    underWay.add(m.key)
    try {
      await connection.send('chat.send', { conversationId: m.conversationId, text: m.text, clientMsgId: m.key, whenBusy: 'queue' }, m.key)
      this.drop(m.key)
    } catch (e) {
      if (!(e instanceof Failure)) throw e
      if (e.code === 'cancelled') return // the sign-in has ended, or the page is being left
      if (e.code === 'conflict' && e.details['messageId']) this.drop(m.key) // it was stored long ago
      else if (stored(m.key)) put({ ...m, problem: errorText(e) }) // else another tab has delivered it
    } finally {
      underWay.delete(m.key)
    }
  },
  /** again sends a message that was refused, under its key: it may be stored after all. */
  again({ problem, ...m }: Unsent) {
    put({ ...m, at: Date.now() })
    void this.deliver(m)
  },
  drop(key: string) {
    storage.remove(prefix + key)
    list = read()
  },
}
