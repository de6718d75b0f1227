import type { Active, Connection, Event } from './connection.js'
import type { Commands, components } from './generated.js'

type Schemas = components['schemas']
type Part = 'text' | 'reasoning' | 'mem' | 'websearch'

/** A reply that is being written. */
export interface Reply {
  generationId: string
  conversationId: string
  /** The message that it becomes; an impersonation has none. */
  messageId: string | undefined
  kind: Schemas['GenerationKind'] | undefined
  /** What is done before the first text. */
  stage: 'memory' | 'websearch' | 'tools' | 'building' | 'waiting' | ''
  text: string
  reasoning: string
  /** Tagged blocks that the model wrote. */
  blocks: { part: 'mem' | 'websearch'; text: string }[]
}

interface Live {
  reply: Reply
  points: number // code points of the text, as the server counts
  thought: number // likewise of the reasoning
  attaching: boolean
}

/** How a generation ended. */
export type End = Extract<Event, { ev: 'gen.done' | 'gen.failed' }>

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
        const { part, state } = e.data
        if (state !== 'open' || (part !== 'mem' && part !== 'websearch')) return
        this.start(e.generationId, e.conversationId, e.messageId).reply.blocks.push({ part, text: '' })
        return
      }
      case 'gen.rewind':
        return this.rewind(this.start(e.generationId, e.conversationId, e.messageId), e.off)
      case 'gen.behind': // a delta with what is missing follows
        return
      case 'gen.done':
      case 'gen.failed': {
        const live = this.live.get(e.generationId)
        this.live.delete(e.generationId)
        if (live) this.ended(live.reply, e as End)
      }
    }
  }

  private start(generationId: string, conversationId: string, messageId: string | undefined): Live {
    let live = this.live.get(generationId)
    if (!live) {
      const reply: Reply = { generationId, conversationId, messageId, kind: undefined, stage: '', text: '', reasoning: '', blocks: [] }
      this.live.set(generationId, (live = { reply, points: 0, thought: 0, attaching: false }))
    }
    live.reply.messageId ??= messageId
    return live
  }

  private delta(live: Live, part: Part, off: number, text: string) {
    const { reply } = live
    const points = Array.from(text)
    if (part === 'reasoning') {
      const known = live.thought - off
      if (known >= 0 && known < points.length) {
        reply.reasoning += points.slice(known).join('')
        live.thought = off + points.length
      }
    } else if (part === 'text') {
      const known = live.points - off
      if (known < 0) return this.attach(live)
      if (known < points.length) {
        reply.text += points.slice(known).join('')
        live.points = off + points.length
      }
    } else {
      const block = reply.blocks.at(-1)
      if (block?.part === part) block.text += text
    }
    this.changed(reply)
  }

  /** rewind takes back the text behind off: it was reasoning. */
  private rewind(live: Live, off: number) {
    if (live.points <= off) return
    live.reply.text = Array.from(live.reply.text).slice(0, off).join('')
    live.points = off
    live.reply.blocks = []
    this.changed(live.reply)
  }

  /** attach asks for the text that is missing. */
  private attach(live: Live) {
    if (live.attaching) return // the deltas meanwhile are in its answer
    live.attaching = true
    const { generationId } = live.reply
    this.connection
      .send('gen.attach', { generationId, off: live.points })
      .then((got: Commands['gen.attach']['reply']) => {
        live.attaching = false
        live.reply.kind = got.generation.kind
        if (this.live.get(generationId) !== live) return // it has ended
        if (got.off < live.points) this.rewind(live, got.off) // what we have was taken back
        if (got.text) this.delta(live, 'text', got.off, got.text)
        else this.changed(live.reply)
      })
      .catch(() => {
        live.attaching = false // it has ended: message.updated has the text
      })
  }
}
