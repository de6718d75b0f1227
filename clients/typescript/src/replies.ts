import type { Active, Connection, Event } from './connection.js'
import type { Commands, components } from './generated.js'

type Schemas = components['schemas']
type Block = 'mem' | 'websearch'
type Part = 'text' | 'reasoning' | Block

/** A reply that is being written. */
export interface Reply {
  generationId: string
  conversationId: string
  /** The message that it becomes; an impersonation has none. */
  messageId: string | undefined
  kind: Schemas['GenerationKind'] | undefined
  /** The work that is done before the first text. */
  stage: 'memory' | 'websearch' | 'research' | 'worldinfo' | 'tools' | 'building' | 'waiting' | ''
  text: string
  reasoning: string
  /** Tagged blocks that the model wrote. */
  blocks: { part: Block; text: string }[]
}

interface Live {
  reply: Reply
  points: number // code points of the text, as the server counts
  thought: number // likewise of the reasoning
  block: number // likewise of the open block; -1 = there is none
  attaching: boolean
  final: string | undefined // the stored text, which gen.done says is the last
  end: End | undefined // told when the missing text is there
}

/** How a generation ended. */
export type End = Extract<Event, { ev: 'gen.done' | 'gen.failed' }>

/** A generation that has ended, and why it failed if it did. */
export interface Over {
  reply: Reply
  error: Schemas['StoredError'] | undefined
}

const over = new Set<Schemas['GenerationStatus']>(['done', 'cancelled', 'failed', 'interrupted'])

/**
 * Replies puts the text of running generations together. Deltas say where they belong;
 * text that was missed is asked for, so nothing is appended blindly.
 */
export class Replies {
  private readonly connection: Pick<Connection, 'send'>
  private readonly changed: (reply: Reply) => void
  private readonly ended: (reply: Reply, end: End | null) => void
  private live = new Map<string, Live>()

  constructor(connection: Pick<Connection, 'send'>, changed: (reply: Reply) => void, ended: (reply: Reply, end: End | null) => void = () => {}) {
    this.connection = connection
    this.changed = changed
    this.ended = ended
  }

  get(generationId: string): Reply | undefined {
    return this.live.get(generationId)?.reply
  }

  /** of returns the reply that is being written for a message. */
  of(messageId: string): Reply | undefined {
    for (const { reply } of this.live.values()) if (reply.messageId === messageId) return reply
    return undefined
  }

  /**
   * active takes the generations that run when a connection opens. How others have
   * ended is told by the events that follow, unless the connection was not resumed.
   */
  active(list: Active[], resumed: boolean) {
    for (const [id, live] of this.live) {
      if (resumed || list.some((a) => a.generationId === id)) continue
      this.live.delete(id)
      this.ended(live.reply, null)
    }
    for (const a of list) this.attach(this.start(a.generationId, a.conversationId, a.messageId))
  }

  /** event takes an event of the connection; those that are about no generation are ignored. */
  event(e: Event) {
    switch (e.ev) {
      case 'gen.started': {
        const live = this.start(e.generationId, e.conversationId, e.messageId)
        live.reply.kind = e.data.kind
        return this.changed(live.reply)
      }
      case 'gen.stage': {
        const live = this.start(e.generationId, e.conversationId, e.messageId)
        live.reply.stage = e.data.stage
        return this.changed(live.reply)
      }
      case 'gen.delta':
        return this.delta(this.start(e.generationId, e.conversationId, e.messageId), e.data.part as Part, e.off, e.data.text)
      case 'gen.block': {
        const live = this.start(e.generationId, e.conversationId, e.messageId)
        const { part, state } = e.data
        live.block = -1
        if (state === 'open' && (part === 'mem' || part === 'websearch')) this.open(live, part)
        return this.changed(live.reply)
      }
      case 'gen.rewind':
        return this.rewind(this.start(e.generationId, e.conversationId, e.messageId), e.off)
      case 'gen.behind': // a delta with what is missing follows
        return
      case 'message.updated':
        return this.stored(e.data.message)
      case 'gen.done':
      case 'gen.failed': {
        const live = this.live.get(e.generationId)
        if (live) this.end(live, e as End)
      }
    }
  }

  /**
   * follow asks for a generation that is not known. If it runs, its events follow;
   * if not, follow returns what became of it.
   */
  async follow(generationId: string): Promise<Over | undefined> {
    const got = await this.connection.send('gen.attach', { generationId, off: 0 })
    const { kind, status, error } = got.generation
    const live = this.live.get(generationId)
    if (!live && over.has(status)) return { reply: { ...empty(generationId, got.conversationId, got.messageId), kind, text: got.text }, error }
    this.take(live ?? this.start(generationId, got.conversationId, got.messageId), got, 0)
    return undefined
  }

  private start(generationId: string, conversationId: string, messageId: string | undefined): Live {
    let live = this.live.get(generationId)
    if (!live) {
      live = { reply: empty(generationId, conversationId, messageId), points: 0, thought: 0, block: -1, attaching: false, final: undefined, end: undefined }
      this.live.set(generationId, live)
    }
    live.reply.messageId ??= messageId
    return live
  }

  private open(live: Live, part: Block) {
    live.reply.blocks.push({ part, text: '' })
    live.block = 0
  }

  private delta(live: Live, part: Part, off: number, text: string) {
    const { reply } = live
    const points = Array.from(text)
    if (part === 'text') {
      if (off > live.points) return this.attach(live)
      reply.text += points.slice(live.points - off).join('')
      live.points = Math.max(live.points, off + points.length)
    } else if (part === 'reasoning') {
      if (off > live.thought) return // it was missed; message.updated has all of it
      reply.reasoning += points.slice(live.thought - off).join('')
      live.thought = Math.max(live.thought, off + points.length)
    } else {
      if (off === 0 && live.block < 0) this.open(live, part)
      const block = reply.blocks.at(-1)
      if (live.block < off || block?.part !== part) return // likewise
      block.text += points.slice(live.block - off).join('')
      live.block = Math.max(live.block, off + points.length)
    }
    this.changed(reply)
  }

  /** rewind takes back the text behind off: it was reasoning. */
  private rewind(live: Live, off: number) {
    if (live.points <= off) return
    live.reply.text = Array.from(live.reply.text).slice(0, off).join('')
    live.points = off
    live.reply.blocks = []
    live.block = -1
    this.changed(live.reply)
  }

  /** attach asks for the text that is missing. */
  private attach(live: Live) {
    if (live.attaching) return // the deltas meanwhile are in its answer
    live.attaching = true
    const { generationId } = live.reply
    const off = live.points
    this.connection.send('gen.attach', { generationId, off }).then(
      (got) => {
        live.attaching = false
        if (this.live.get(generationId) !== live) return // its end was missed
        this.take(live, got, off)
        if (live.end) this.end(live, live.end)
      },
      () => {
        live.attaching = false
        if (live.end && this.live.get(generationId) === live) this.end(live, live.end)
      },
    )
  }

  /** take takes the answer to gen.attach with off. */
  private take(live: Live, got: Commands['gen.attach']['reply'], off: number) {
    live.reply.kind = got.generation.kind
    if (got.off < off && live.points > got.off) {
      // The text is shorter than ours: some of it was taken back while we were away, and
      // we cannot know how much.
      this.rewind(live, 0)
      return this.attach(live)
    }
    this.delta(live, 'text', got.off, got.text)
  }

  /** stored keeps the text of a message until gen.done says that it is the last. */
  private stored(m: Schemas['Message']) {
    const live = m.generationId ? this.live.get(m.generationId) : undefined
    if (!live || (m.status !== 'complete' && m.status !== 'cancelled')) return
    live.final = m.swipes.find((s) => s.generationId === m.generationId)?.text ?? m.text
  }

  private end(live: Live, end: End) {
    if (end.ev === 'gen.done') {
      if (live.final !== undefined) live.reply.text = live.final
      else if (live.attaching) return void (live.end = end)
    }
    this.live.delete(live.reply.generationId)
    this.ended(live.reply, end)
  }
}

const empty = (generationId: string, conversationId: string, messageId: string | undefined): Reply => ({
  generationId,
  conversationId,
  messageId,
  kind: undefined,
  stage: '',
  text: '',
  reasoning: '',
  blocks: [],
})
