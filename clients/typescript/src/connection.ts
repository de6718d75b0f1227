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
  WebSocket?: typeof WebSocket

  /** Called for each event, in order and once. */
  event(e: Event): void
  /** The missed events are no longer kept: load everything, and return its position. */
  reload(): Promise<Position>
  /** Connected: these generations are running. If it was resumed, the missed events follow. */
  active?(list: Active[], resumed: boolean): void
  state?(state: State): void
  /** The sign-in is no longer valid. */
  signedOut?(): void
}

type Frame = { id: string; cmd: string; key?: string; data: unknown }

interface Waiting {
  frame: Frame
  done(data: unknown): void
  failed(e: Failure): void
}

/** Close codes after which connecting again without a change is pointless. */
const final = new Set([4400, 4403, 4409, 4426])

/** A connection that lasted this long was good: the next wait is short again. */
const good = 60_000

/** How long the server may take to answer a ping. */
const pingTimeout = 5_000

/**
 * Connection is a WebSocket that comes back by itself. It resumes where it was and
 * sends commands that were not answered again, in their order and under their keys.
 */
export class Connection {
  position: Position | null
  private readonly options: ConnectionOptions
  private socket: WebSocket | null = null
  private welcomed = false
  private reloading: Event[] | null = null // events that arrive while everything is loaded
  private attempts = 0
  private openedAt = 0
  private notBefore = 0 // from which the server wants connections again
  private next = 1
  private waiting = new Map<string, Waiting>()
  private timer: ReturnType<typeof setTimeout> | undefined
  private pinging: ReturnType<typeof setTimeout> | undefined
  private closed = true

  constructor(options: ConnectionOptions) {
    this.options = options
    this.position = options.position ?? null
  }

  /** open connects, and stays connected until close. */
  open() {
    if (!this.closed) return
    this.closed = false
    void this.connect()
  }

  close() {
    this.closed = true
    clearTimeout(this.timer)
    clearTimeout(this.pinging)
    const socket = this.socket
    this.socket = null
    this.welcomed = false
    socket?.close(1000)
    for (const w of this.waiting.values()) w.failed(new Failure({ code: 'cancelled', detail: 'The connection was closed.' }))
    this.waiting.clear()
    this.options.state?.('closed')
  }

  /**
   * wake is to be called when the app comes to the foreground or the network changes:
   * it connects without waiting, or checks that the connection is still alive.
   */
  wake() {
    if (this.closed) return
    if (!this.socket) {
      if (Date.now() < this.notBefore) return
      clearTimeout(this.timer)
      return void this.connect()
    }
    if (!this.welcomed) return
    clearTimeout(this.pinging)
    this.pinging = setTimeout(() => this.lost(0), pingTimeout)
    this.socket.send('{"cmd":"ping"}')
  }

  /** send performs a command. It waits for a connection as long as it takes. */
  send<C extends keyof Commands>(cmd: C, data: Commands[C]['data'], key = newKey()): Promise<Commands[C]['reply']> {
    return new Promise((done, failed) => {
      const frame = { id: String(this.next++), cmd, key, data }
      this.waiting.set(frame.id, { frame, done: done as (data: unknown) => void, failed })
      if (this.welcomed) this.socket?.send(JSON.stringify(frame))
    })
  }

  private async connect() {
    const { rest, WebSocket: Socket = WebSocket } = this.options
    this.options.state?.('connecting')
    let query = ''
    if (!rest.token) {
      // A browser: its cookie buys a ticket, as it can set no header.
      try {
        query = '?ticket=' + (await rest.post('/ws/tickets')).ticket
      } catch (e) {
        if (this.closed) return
        if (e instanceof Failure && e.status === 401) return this.signedOut()
        return this.later()
      }
      if (this.closed || this.socket) return
    }
    const base = rest.base || location.origin
    const socket = new Socket(base.replace(/^http/, 'ws') + '/api/v1/ws' + query, 'nodest.v1')
    this.socket = socket
    socket.onopen = () => socket.send(JSON.stringify({ id: 'hello', cmd: 'hello', data: this.hello() }))
    socket.onmessage = (m) => this.socket === socket && this.receive(JSON.parse(m.data))
    socket.onclose = (c) => this.socket === socket && this.lost(c.code)
  }

  private hello() {
    const { rest, client, deviceId, deltaMs } = this.options
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
    return { protocol: 1, client, deviceId, deltaMs, timeZone, token: rest.token ?? null, resume: this.position ?? undefined, batch: true }
  }

  private receive(frame: any) {
    if (Array.isArray(frame)) return frame.forEach((f) => this.receive(f))
    clearTimeout(this.pinging)
    if (frame.id === 'hello') return void this.welcome(frame)
    if (frame.id !== undefined) return this.reply(frame)
    this.event(frame)
  }

  private event(e: Event) {
    if (this.reloading) return void this.reloading.push(e)
    if ('seq' in e && e.seq !== undefined && this.position) {
      if (e.seq <= this.position.seq) return // known from before the cut
      if (e.seq > this.position.seq + 1 && e.ev !== 'skip') return this.lost(0) // there is a hole: resume from before it
      this.position.seq = e.seq
    }
    if (e.ev === 'server.going_away') this.notBefore = Date.now() + e.data.inMs + e.data.retryAfterMs
    this.options.event(e)
  }

  private async welcome(frame: { ok: boolean; data: Welcome }) {
    const socket = this.socket
    if (!frame.ok) return socket?.close()
    if (!frame.data.resumed && !(await this.reload(socket))) return
    this.welcomed = true
    this.openedAt = Date.now()
    this.notBefore = 0
    this.options.state?.('open')
    this.options.active?.(frame.data.active, frame.data.resumed)
    for (const w of this.waiting.values()) this.socket?.send(JSON.stringify(w.frame))
  }

  /** reload loads everything; what happens meanwhile is told afterwards. */
  private async reload(socket: WebSocket | null): Promise<boolean> {
    this.reloading = []
    try {
      this.position = await this.options.reload()
    } catch {
      if (this.socket === socket) this.lost(0)
      return false
    } finally {
      const events = this.reloading ?? []
      this.reloading = null
      if (this.socket === socket) for (const e of events) this.event(e)
    }
    return this.socket === socket
  }

  private reply(frame: any) {
    const w = this.waiting.get(frame.id)
    if (!w) return
    this.waiting.delete(frame.id)
    if (frame.ok) w.done(frame.data)
    else w.failed(new Failure(frame.error))
  }

  private lost(code: number) {
    const socket = this.socket
    this.socket = null
    this.welcomed = false
    clearTimeout(this.pinging)
    if (code === 0) socket?.close()
    if (code === 4401) return this.signedOut()
    if (final.has(code)) return this.close()
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
    this.options.state?.('waiting')
    const wait = Math.random() * Math.min(30_000, 500 * 2 ** this.attempts++)
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.connect(), Math.max(wait, Math.min(this.notBefore - Date.now(), 60_000)))
  }
}
