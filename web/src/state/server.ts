// The connection to the server, which all parts of the page share.

import { Client, newKey, type Event, type Position, type Reply, type End, type Snapshot, type State } from '@nodest/client'
import { storage } from '../lib/storage'

/** A Listener is told what a part of the page needs to know. */
export interface Listener {
  event?(e: Event): void
  /** Everything was loaded anew: what is shown may be old. */
  snapshot?(s: Snapshot): void | Promise<void>
  reply?(r: Reply): void
  ended?(r: Reply, how: End | null): void
  state?(s: State): void
  signedOut?(): void
}

const listeners = new Set<Listener>()

/** listen returns a function that ends it. */
export function listen(l: Listener): () => void {
  listeners.add(l)
  return () => listeners.delete(l)
}

const tell = (f: (l: Listener) => unknown) => Promise.all([...listeners].map(f))

/** device names this browser, so that its own events can be told from those of others. */
const known = storage.get('nodest.device') ?? ''
export const deviceId = /^[\w-]{1,64}$/.test(known) ? known : 'web-' + newKey().slice(0, 12)
storage.set('nodest.device', deviceId)

export const client: Client = new Client({
  client: 'web',
  deviceId,
  deltaMs: 60,
  fetch: (url, init) => fetch(url, { ...init, keepalive: init?.method === 'DELETE' }), // a deletion survives leaving the page
  event: (e) => {
    if (e.ev === 'account.imported' && e.by !== deviceId) location.reload() // everything may be new
    void tell((l) => l.event?.(e))
  },
  snapshot: (s) => void tell((l) => l.snapshot?.(s)),
  reply: (r) => void tell((l) => l.reply?.(r)),
  ended: (r, how) => void tell((l) => l.ended?.(r, how)),
  state: (s) => void tell((l) => l.state?.(s)),
  signedOut: () => void tell((l) => l.signedOut?.()),
})
export const { rest, connection, replies } = client

addEventListener('online', () => connection.wake())
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && connection.wake())

/** start loads everything and connects from there. */
export async function start(): Promise<Position> {
  connection.position = await client.load()
  connection.open()
  return connection.position
}
