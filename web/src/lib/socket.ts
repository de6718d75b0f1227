// The WebSocket side: one connection that comes back by itself, resumes where it
// was, and sends unanswered commands again under their keys.

import { Failure, newKey, request } from './api'

export interface Event {
  ev: string
  seq?: number
  conversationId?: string
  messageId?: string
  generationId?: string
  off?: number
  data?: any
}

export interface Active {
  generationId: string
  conversationId: string
  messageId: string
  off: number
}

export interface Handlers {
  /** Everything that happens, in order. */
  event(e: Event): void
  /** The missed events cannot be replayed: load everything anew. */
  reload(): Promise<{ epoch: string; seq: number }>
  /** Connected again; these generations run. */
  active(list: Active[]): void
  state(s: 'connecting' | 'open' | 'waiting'): void
  /** The sign-in is not valid any more. */
  signedOut(): void
}

interface Waiting {
  frame: { id: string; cmd: string; key: string | undefined; data: unknown }
  done(data: any): void
  failed(e: Failure): void
}

/** Close codes after which connecting again unchanged is pointless. */
const final = new Set([4400, 4403, 4409, 4426])

export class Connection {
  private socket: WebSocket | null = null
  private ready = false
  private attempts = 0
  private next = 1
  private waiting = new Map<string, Waiting>()
  private position: { epoch: string; seq: number } | null = null
  private timer: number | undefined
  private ended = false

  constructor(private handlers: Handlers) {
    addEventListener('online', () => this.now())
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && this.now())
  }

  /** start connects, from the position of what is shown already. */
  start(position: { epoch: string; seq: number }) {
    this.position = position
    void this.connect()
  }

  /** send performs a command; with a key it is sent again after a cut. */
  send<T>(cmd: string, data: unknown, writes = true): Promise<T> {
    return new Promise((done, failed) => {
      const frame = { id: String(this.next++), cmd, key: writes ? newKey() : undefined, data }
      this.waiting.set(frame.id, { frame, done, failed })
      if (this.ready) this.socket?.send(JSON.stringify(frame))
    })
  }

  private now() {
    if (this.ended || this.socket) return
    clearTimeout(this.timer)
    void this.connect()
  }

  private async connect() {
    this.handlers.state('connecting')
    let ticket: string
    try {
      ticket = (await request<{ ticket: string }>('POST', '/ws/tickets')).ticket
    } catch (e) {
      if (e instanceof Failure && (e.code === 'unauthenticated' || e.code === 'token_expired')) return this.handlers.signedOut()
      return this.later()
    }
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws'
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/ws?ticket=${ticket}`, 'nodest.v1')
    this.socket = socket
    socket.onopen = () => socket.send(JSON.stringify({ id: 'hello', cmd: 'hello', data: this.hello() }))
    socket.onmessage = (m) => this.receive(JSON.parse(m.data))
    socket.onclose = (c) => this.closed(socket, c.code)
  }

  private hello() {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
    return { protocol: 1, client: 'web', deviceId: device(), timeZone, resume: this.position, batch: true }
  }

  private receive(frame: any) {
    if (Array.isArray(frame)) return frame.forEach((f) => this.receive(f))
    if (frame.id === 'hello') return void this.welcome(frame)
    if (frame.id !== undefined) return this.reply(frame)
    if (frame.seq !== undefined && this.position) {
      if (frame.seq <= this.position.seq) return // seen before the cut
      this.position.seq = frame.seq
    }
    this.handlers.event(frame)
  }

  private async welcome(frame: any) {
    if (!frame.ok) return this.socket?.close()
    const hello = frame.data
    if (!hello.resumed) this.position = await this.handlers.reload()
    this.ready = true
    this.attempts = 0
    this.handlers.state('open')
    this.handlers.active(hello.active ?? [])
    for (const w of this.waiting.values()) this.socket?.send(JSON.stringify(w.frame))
  }

  private reply(frame: any) {
    const w = this.waiting.get(frame.id)
    if (!w) return
    this.waiting.delete(frame.id)
    if (frame.ok) w.done(frame.data)
    else w.failed(new Failure(frame.error.code, frame.error.detail))
  }

  private closed(socket: WebSocket, code: number) {
    if (this.socket !== socket) return
    this.socket = null
    this.ready = false
    if (code === 4401) return this.handlers.signedOut()
    if (final.has(code)) {
      this.ended = true
      return this.handlers.state('waiting')
    }
    this.later()
  }

  /** later connects again after a time that grows and is different for everybody. */
  private later() {
    this.handlers.state('waiting')
    const wait = Math.random() * Math.min(30_000, 500 * 2 ** this.attempts++)
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.connect(), wait)
  }
}

/** device names this browser to the server, so that it knows its own echo. */
function device(): string {
  let id = localStorage.getItem('nodest.device')
  if (!id) localStorage.setItem('nodest.device', (id = 'web-' + newKey().slice(0, 12)))
  return id
}
