import { Failure } from './failure.js'
import type { Commands, components, Events } from './generated.js'
import { newKey } from './key.js'
import type { Rest } from './rest.js'

type Schemas = components['schemas']

/** An event of the user. Ignore those that you do not know. */
export type Event = Events[keyof Events]
export type Active = Schemas['Active'][number]
export type Welcome = Schemas['Welcome']

/** A position in the user's events: all of them up to seq are known. */
export interface Position {
  epoch: string
  seq: number
}

export type State = 'connecting' | 'open' | 'waiting' | 'closed'

/** The part of a WebSocket that is used. */
export interface Socket {
  onopen: ((e: any) => void) | null
  onmessage: ((e: any) => void) | null
  onerror: ((e: any) => void) | null
  onclose: ((e: any) => void) | null
  send(data: string): void
  close(code?: number): void
}
export type SocketClass = new (url: string, protocol?: string) => Socket

export interface ConnectionOptions {
  rest: Rest
  /** Id of the device, stored by the app. */
  deviceId: string
  /** Name and version of the app, for the log of the server. */
  client?: string
  /** Where the last connection ended; the events after it follow. */
  position?: Position | null
  /** Milliseconds for which the server collects deltas. */
  deltaMs?: number
  /** The class for sockets where there is no global one, such as that of the package ws. */
  WebSocket?: SocketClass

  /** Called for each event, in order and once. */
  event(e: Event): void
  /** The missed events are no longer kept: load everything, and return its position. */
  reload(): Promise<Position>
  /** Connected: these generations are running. If it was resumed, the missed events follow. */
  active?(list: Active[], resumed: boolean): void
  state?(state: State): void
  /** The sign-in is no longer valid, or somebody else has signed in with this browser. */
  signedOut?(): void
}

type Frame = { id: string; cmd: string; key?: string; data: unknown }

interface Waiting {
  frame: Frame
  sent: boolean // on this connection
  done(data: unknown): void
  failed(e: Failure): void
}

/** final reports whether connecting again without a change is pointless after a close code. */
const final = (code: number) => code >= 4400 && code < 4500 && code !== 4408 && code !== 4429

/** A connection that lasted this long was good: the next wait is short again. */
const good = 60_000

/** How long it may take until hello is answered. */
const helloTimeout = 10_000

/** How long the server may take to answer a ping. */
const pingTimeout = 5_000

/** How many commands may be unanswered: fewer than the server takes at once. */
const atOnce = 16

/** A command that must wait no longer than this for the limit of commands waits by itself. */
const mostHeld = 5_000

/**
 * Connection is a WebSocket that comes back by itself. It resumes where it was and
 * sends commands that were not answered again, in their order and under their keys.
 */
export class Connection {
  /** The last event that was told; each is another object. */
  position: Position | null
  private readonly options: ConnectionOptions
  private socket: Socket | null = null
  private asking: AbortController | null = null // for a ticket
  private greeted = false // hello was answered
  private ready = false // and everything is loaded: commands are sent
  private reloading: Event[] | null = null // events that arrive while everything is loaded
  private attempts = 0
  private openedAt = 0
  private least = 0 // milliseconds that the server wants to have after this connection
  private notBefore = 0 // and until when that is
  private next = 1
  private waiting = new Map<string, Waiting>() // in their order
  private timer: ReturnType<typeof setTimeout> | undefined // for the next connection, or for hello
  private pinging: ReturnType<typeof setTimeout> | undefined
  private held: ReturnType<typeof setTimeout> | undefined // commands, by the limit of the server
  private closed = true
  private user = '' // who has been greeted since open

  constructor(options: ConnectionOptions) {
    this.options = options
    this.position = options.position ?? null
  }

  /** open connects, and stays connected until close. */
  open() {
    if (!this.closed) return
    this.closed = false
    this.user = ''
    void this.connect()
  }

  /** close ends the connection. Commands without an answer fail; it may be opened again. */
  close() {
    this.end('The connection was closed.')
  }

  private end(why: string) {
    if (this.closed) return
    this.closed = true
    this.leave()?.close(1000)
    const waiting = [...this.waiting.values()]
    this.waiting.clear()
    for (const w of waiting) w.failed(new Failure({ code: 'cancelled', detail: why }))
    this.options.state?.('closed')
  }

  /**
   * wake is to be called when the app comes to the foreground or the network changes:
   * it connects without waiting, or checks that the connection is still alive.
   */
  wake() {
    if (this.closed) return
    if (!this.socket) {
      if (Date.now() >= this.notBefore) void this.connect()
    } else if (this.greeted) {
      clearTimeout(this.pinging)
      this.pinging = setTimeout(() => this.lost(0), pingTimeout)
      this.socket.send('{"cmd":"ping"}')
    }
  }

  /** send performs a command. It waits for a connection as long as it takes. */
  send<C extends keyof Commands>(cmd: C, data: Commands[C]['data'], key = newKey()): Promise<Commands[C]['reply']> {
    return new Promise((done, failed) => {
      const frame = { id: String(this.next++), cmd, key, data }
      this.waiting.set(frame.id, { frame, sent: false, done: done as (data: unknown) => void, failed })
      this.flush()
    })
  }

  /** flush sends the commands that were not sent on this connection, in their order. */
  private flush() {
    if (!this.ready || this.held !== undefined) return
    let unanswered = 0
    for (const w of this.waiting.values()) {
      if (!w.sent) this.socket?.send(JSON.stringify(w.frame))
      w.sent = true
      if (++unanswered === atOnce) return
    }
  }

  private async connect() {
    const { rest, WebSocket: Socket = WebSocket as SocketClass } = this.options
    this.leave()
    this.timer = setTimeout(() => this.lost(0), helloTimeout)
    this.options.state?.('connecting')
    let query = ''
    if (!rest.token) {
      // A browser: its cookie buys a ticket, as it can set no header.
      const asking = (this.asking = new AbortController())
      try {
        query = '?ticket=' + (await rest.post('/ws/tickets', { signal: asking.signal })).ticket
      } catch (e) {
        if (this.asking !== asking) return // no longer wanted
        if (e instanceof Failure && e.status === 401) return this.signedOut()
        if (e instanceof Failure) this.least = e.retryAfterMs
        return this.lost(0)
      }
      if (this.asking !== asking) return
    }
    const base = rest.base || location.origin
    const socket = new Socket(base.replace(/^http/, 'ws') + '/api/v1/ws' + query, 'nodest.v1')
    this.socket = socket
    let opened = false
    socket.onopen = () => {
      opened = true
      socket.send(JSON.stringify({ id: 'hello', cmd: 'hello', data: this.hello() }))
    }
    socket.onmessage = (m) => this.receive(socket, m.data)
    socket.onerror = () => !opened && this.socket === socket && this.lost(0) // not everywhere is it closed then
    socket.onclose = (c) => this.socket === socket && this.lost(c.code, c.reason)
  }

  private hello() {
    const { rest, client, deviceId, deltaMs } = this.options
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
    return { protocol: 1, client, deviceId, deltaMs, timeZone, token: rest.token ?? null, resume: this.position ?? undefined, batch: true }
  }

  private receive(socket: Socket, data: string) {
    if (this.socket !== socket) return
    clearTimeout(this.pinging)
    const frame = JSON.parse(data)
    for (const f of Array.isArray(frame) ? frame : [frame]) {
      if (this.socket !== socket) return // it was given up: the rest comes again
      if (f.id === 'hello') void this.welcome(socket, f)
      else if (f.id !== undefined) this.reply(f)
      else if (this.reloading) this.reloading.push(f)
      else this.event(f)
    }
  }

  private event(e: Event) {
    if ('seq' in e && e.seq !== undefined && this.position) {
      const { epoch, seq } = this.position
      if (e.seq <= seq) return // known from before the cut
      if (e.seq > seq + 1 && e.ev !== 'skip') return this.lost(0) // there is a hole: resume from before it
      this.position = { epoch, seq: e.seq }
    }
    if (e.ev === 'server.going_away') this.least = e.data.retryAfterMs
    try {
      this.options.event(e)
    } catch (mistake) {
      queueMicrotask(() => { throw mistake }) // the mistake of the app costs it no other events
    }
  }

  private async welcome(socket: Socket, frame: { ok: boolean; data: Welcome }) {
    if (!frame.ok) return // the server closes, and its code says what to do
    clearTimeout(this.timer)
    const { user } = frame.data
    if (user !== (this.user ||= user)) return this.signedOut()
    this.greeted = true
    let { active } = frame.data
    let meanwhile: Event[] = []
    if (!frame.data.resumed) {
      meanwhile = this.reloading = []
      let position: Position
      try {
        position = await this.options.reload()
      } catch (e) {
        if (!(e instanceof Failure)) console.error(e)
        if (this.socket === socket) this.lost(0)
        return
      }
      if (this.socket !== socket) return // the next connection loads again
      this.reloading = null
      this.position = position
      if (position.epoch !== frame.data.epoch) return this.lost(0) // a backup was restored meanwhile
      // The events up to the position are not told: those that ended run no longer.
      const over = new Set<string>()
      for (const e of meanwhile) if ((e.ev === 'gen.done' || e.ev === 'gen.failed') && e.seq !== undefined && e.seq <= position.seq) over.add(e.generationId)
      active = active.filter((a) => !over.has(a.generationId))
    }
    this.ready = true
    this.openedAt = Date.now()
    this.least = 0
    this.options.state?.('open')
    if (this.socket === socket) this.options.active?.(active, frame.data.resumed)
    for (const e of meanwhile) if (this.socket === socket) this.event(e)
    this.flush()
  }

  private reply(frame: any) {
    const w = this.waiting.get(frame.id)
    if (!w) return
    if (!frame.ok && frame.error.code === 'rate_limited' && frame.error.retryAfterMs <= mostHeld) return this.hold(w, frame.error.retryAfterMs)
    this.waiting.delete(frame.id)
    if (frame.ok) w.done(frame.data)
    else w.failed(new Failure(frame.error))
    this.flush()
  }

  /** hold sends a command again when the server takes more of them. */
  private hold(w: Waiting, ms: number) {
    w.sent = false
    this.least = Math.max(this.least, ms)
    clearTimeout(this.held)
    this.held = setTimeout(() => {
      this.held = undefined
      this.flush()
    }, ms)
  }

  /** leave forgets the socket, and whatever waits for it. */
  private leave(): Socket | null {
    const { socket } = this
    this.socket = null
    this.asking?.abort()
    this.asking = null
    this.greeted = this.ready = false
    this.reloading = null
    for (const t of [this.timer, this.pinging, this.held]) clearTimeout(t)
    this.held = undefined
    for (const w of this.waiting.values()) w.sent = false
    return socket
  }

  private lost(code: number, reason = '') {
    const socket = this.leave()
    if (code === 0) socket?.close()
    if (code === 4401) return this.signedOut()
    if (final(code)) return this.end(`The server ended the connection: ${reason || code}.`)
    if (this.openedAt && Date.now() - this.openedAt > good) this.attempts = 0
    this.openedAt = 0
    this.later()
  }

  private signedOut() {
    this.close()
    this.options.signedOut?.()
  }

  /** later connects again after a time that grows and is different for everybody. */
  private later() {
    const least = Math.min(this.least, 60_000)
    this.least = 0
    this.notBefore = Date.now() + least
    const wait = Math.random() * Math.min(30_000, 500 * 2 ** this.attempts++)
    this.timer = setTimeout(() => void this.connect(), Math.max(wait, least))
    this.options.state?.('waiting')
  }
}
