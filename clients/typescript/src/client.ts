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
  private watchers = new Map<string, Watcher>()
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
    })
    this.replies = new Replies(
      this.connection,
      (reply) => {
        options.reply?.(reply)
        this.watchers.get(reply.generationId)?.()
      },
      (reply, how) => {
        options.ended?.(reply, how)
        this.ends.set(reply.generationId, { reply, how })
        for (const id of this.ends.keys()) if (this.ends.size > 32) this.ends.delete(id)
        this.watchers.get(reply.generationId)?.()
      },
    )
  }

  private event(e: Event) {
    this.replies.event(e)
    this.options.event?.(e)
  }

  /** load reads everything that a client shows. */
  async load(): Promise<Position> {
    const s = (await this.rest.get('/sync')) as Snapshot
    this.options.snapshot?.(s)
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

  /** watch yields a running reply as it grows. It throws if the generation failed. */
  async *watch(generationId: string): AsyncGenerator<Reply> {
    let seen = ''
    let wake = () => {}
    this.watchers.set(generationId, () => wake())
    try {
      for (;;) {
        const ended = this.ends.get(generationId)
        const reply = ended?.reply ?? this.replies.get(generationId)
        if (reply && reply.text !== seen) {
          seen = reply.text
          yield reply
        } else if (ended) {
          if (ended.how?.ev === 'gen.failed') throw new Failure(ended.how.data.error)
          return
        } else {
          await new Promise<void>((done) => (wake = done))
        }
      }
    } finally {
      this.watchers.delete(generationId)
    }
  }
}

type Watcher = () => void

interface Ended {
  reply: Reply
  how: End | null
}
