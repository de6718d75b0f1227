import { Connection, type ConnectionOptions, type Event, type Position } from './connection.js'
import { Failure } from './failure.js'
import type { Commands, components } from './generated.js'
import { newKey } from './key.js'
import { Replies, type End, type Reply } from './replies.js'
import { Rest, type RestOptions } from './rest.js'

type Schemas = components['schemas']
export type Snapshot = Schemas['Snapshot']
export type Message = Schemas['Message']

export interface ClientOptions extends Omit<RestOptions, 'deviceId'>, Omit<ConnectionOptions, 'rest' | 'reload' | 'event'> {
  event?(e: Event): void
  /** Everything that the client shows, and its position. */
  snapshot?(s: Snapshot): void
  /** A reply has grown. */
  reply?(reply: Reply): void
  /** A reply has ended; how is null if that was missed: load its message. */
  ended?(reply: Reply, how: End | null): void
}

/** Client is a user at one server: REST calls, the connection and the replies that are being written. */
export class Client {
  readonly rest: Rest
  readonly connection: Connection
  readonly replies: Replies
  private readonly options: ClientOptions
  private watchers = new Map<string, Set<Watcher>>()
  private loading = 0
  private ends = new Map<string, Ended>() // the last replies that ended

  constructor(options: ClientOptions) {
    this.options = options
    this.rest = new Rest(options)
    this.connection = new Connection({
      ...options,
      rest: this.rest,
      event: (e) => this.event(e),
      reload: () => this.load(),
      active: (list, resumed) => {
        this.replies.active(list, resumed)
        options.active?.(list, resumed)
      },
      state: (s) => {
        options.state?.(s)
        if (s === 'closed') for (const id of this.watchers.keys()) this.wake(id, true)
      },
    })
    this.replies = new Replies(
      this.connection,
      (reply) => {
        options.reply?.(reply)
        this.wake(reply.generationId)
      },
      (reply, how) => {
        options.ended?.(reply, how)
        this.ends.set(reply.generationId, { reply, how })
        for (const id of this.ends.keys()) if (this.ends.size > 32) this.ends.delete(id)
        this.wake(reply.generationId)
      },
    )
  }

  private event(e: Event) {
    this.replies.event(e)
    this.options.event?.(e)
  }

  private wake(generationId: string, closed = false) {
    for (const w of this.watchers.get(generationId) ?? []) w(closed)
  }

  /** load reads everything that a client shows. */
  async load(): Promise<Position> {
    const turn = ++this.loading
    const s = (await this.rest.get('/sync')) as Snapshot
    if (turn === this.loading) this.options.snapshot?.(s) // else something newer follows
    return { epoch: s.epoch, seq: s.seq }
  }

  /**
   * missed yields the events after a position over REST, for work in the background.
   * It throws a Failure with the code "conflict" if they are no longer kept: load again.
   */
  async *missed(from: Position): AsyncGenerator<Schemas['Event']> {
    for (let since = from.seq; ; ) {
      const page = (await this.rest.get('/sync', { query: { epoch: from.epoch, since } })) as Schemas['SyncPage']
      if (!page.resumed) throw new Failure({ code: 'conflict', detail: 'The missed events are no longer kept.' })
      yield* page.events
      since = page.seq
      if (!page.more) return
    }
  }

  /**
   * send stores a message and yields the reply as it grows. The message is stored
   * once, even over a lost connection; leaving the loop does not stop the reply.
   */
  async *send(conversationId: string, text: string, options: Partial<Commands['chat.send']['data']> = {}): AsyncGenerator<Reply> {
    const sent = await this.connection.send('chat.send', { clientMsgId: newKey(), ...options, conversationId, text })
    if (sent.generationId) yield* this.watch(sent.generationId)
  }

  /**
   * watch yields a reply as it grows, and at last its stored text; the object is the
   * same until then. It throws if the generation failed or the connection is closed.
   */
  async *watch(generationId: string): AsyncGenerator<Reply> {
    let seen = ''
    let closed = false
    let wake = () => {}
    const watcher = (c: boolean) => {
      closed ||= c
      wake()
    }
    const watchers = this.watchers.get(generationId) ?? new Set()
    this.watchers.set(generationId, watchers.add(watcher))
    try {
      for (;;) {
        const ended = this.ends.get(generationId)
        const reply = ended?.reply ?? this.replies.get(generationId)
        if (!reply || ended?.how === null) {
          this.ends.delete(generationId)
          const over = await this.replies.follow(generationId)
          if (!over) continue
          if (over.reply.text !== seen) yield over.reply
          if (over.error) throw new Failure(over.error)
          return
        }
        if (reply.text !== seen) {
          seen = reply.text
          yield reply
        } else if (ended) {
          if (ended.how?.ev === 'gen.failed') throw new Failure(ended.how.data.error)
          return
        } else if (closed) {
          throw new Failure({ code: 'cancelled', detail: 'The connection was closed.' })
        } else {
          await new Promise<void>((done) => (wake = done))
        }
      }
    } finally {
      watchers.delete(watcher)
      if (watchers.size === 0) this.watchers.delete(generationId)
    }
  }
}

type Watcher = (closed: boolean) => void

interface Ended {
  reply: Reply
  how: End | null
}
